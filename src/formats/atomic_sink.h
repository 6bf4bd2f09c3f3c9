// Passes the bytes of Arrow's writers to an atomic file.
#pragma once

#include <arrow/io/interfaces.h>

#include "core/atomic_file.h"

namespace headscope {

class AtomicSink : public arrow::io::OutputStream {
 public:
  explicit AtomicSink(AtomicFile& file) : file_(file) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return file_.size(); }
  arrow::Status Write(const void* data, std::int64_t size) override {
    file_.write({static_cast<const char*>(data), static_cast<std::size_t>(size)});
    return arrow::Status::OK();
  }
  using arrow::io::OutputStream::Write;

 private:
  AtomicFile& file_;
  bool closed_ = false;
};

}  // namespace headscope

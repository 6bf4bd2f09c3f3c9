// Training in a run folder, with its progress on the console.
#pragma once

#include "core/console.h"
#include "run/run_folder.h"
#include "train/loop.h"

namespace headscope {

inline TrainResult train_with_progress(const TrainJob& job, const Corpus& corpus, const ComputeDevice& device,
                                       const RunFolder& folder, Console& console) {
  std::optional<Progress> progress;
  TrainObserver observer;
  observer.progress = [&](std::int64_t done, double loss) {
    if (progress)
      progress->step(fmt::format("loss {:.3f}", loss));
    else
      progress.emplace(console, job.label, "steps", static_cast<std::size_t>(job.options.steps()),
                       static_cast<std::size_t>(done));
  };
  observer.saving = [&] { console.info("saving"); };
  observer.before_writing = [&] { static_cast<void>(folder.place()); };
  return train(job, corpus, device, observer);
}

}  // namespace headscope

// The last resort of a rank that misses another one.
#pragma once

#include <string>

namespace headscope {

// Ends this process after so many seconds, where it is still there: what it leaves may hang in a library that waits for
// a rank that is gone. Says the message, unless that is empty, which is another rank's to say.
void end_process_after(double seconds, const std::string& message);

}  // namespace headscope

// Files and directories that a signal which ends the process removes first.
#pragma once

namespace finetune {

// From now on SIGINT, SIGTERM and SIGHUP remove what is listed before they end this process: files,
// and directories with the files in them and in their subdirectories.
// Signals that are ignored stay so.
void remove_unfinished_on_signals();

// The list. A name must stay where it is until it is taken off. Names beyond the sixteenth are
// not listed.
void add_unfinished(const char* path);
void take_unfinished_off(const char* path);

}  // namespace finetune

// finetune completion and help: scripts for shells, the manual page, the command reference.
#include <memory>

#include "cli/command.h"
#include "cli/completion/completion_scripts.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "core/error.h"

namespace finetune {
namespace {

constexpr const char* kCompletionExamples =
    "Examples:\n"
    "  source <(finetune completion bash)                     in ~/.bashrc\n"
    "  finetune completion bash > ~/.local/share/bash-completion/completions/finetune\n"
    "  finetune completion zsh > ~/.zfunc/_finetune           a folder of $fpath\n"
    "  finetune completion fish > ~/.config/fish/completions/finetune.fish\n"
    "\n"
    "`meson install` and the Debian package have them where the shells look for them.";

constexpr const char* kHelpExamples =
    "Examples:\n"
    "  finetune help train                   the options that people use\n"
    "  finetune help train all               every option, as train --help all\n"
    "  finetune help --man train | man -l -";

std::string manual(const CommandEntry& program, const std::string& name) {
  if (name.empty()) return man_page(program, FINETUNE_VERSION);
  for (const CommandEntry& command : program.commands) {
    if (command.name == name) return man_page_of(command, FINETUNE_VERSION);
  }
  throw usage_error("unknown command ", in_quotes(name), " (finetune help lists them)");
}

std::string script_for(const std::string& shell, const CommandEntry& program) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return zsh_script(program);
  return fish_script(program);
}

constexpr OptionInfo kShell{.name = "shell",
                            .required = commands::all,
                            .is_argument = true,
                            .help = "whose completion is printed",
                            .words = "bash|zsh|fish"};

constexpr OptionInfo kCommand{
    .name = "command", .is_argument = true, .help = "whose options are shown", .value = "COMMAND"};

}  // namespace

void add_completion_command(Subcommand program, int&) {
  const Subcommand command = program.add_subcommand(
      "completion", "Print the script that completes commands and options in a shell");
  auto shell = std::make_shared<std::string>();
  add_option(command, kShell, shell.get(), {});
  command.footer(kCompletionExamples);
  command.callback(
      [program, shell] { write_standard_output(script_for(*shell, describe(program))); });
}

void add_help_command(Subcommand program, int&) {
  const Subcommand command =
      program.add_subcommand("help", "Show the help of a command, as COMMAND --help does");
  auto man = std::make_shared<bool>(false), markdown = std::make_shared<bool>(false);
  auto name = std::make_shared<std::string>();
  add_option(command, kCommand, name.get(), {});
  command.add_flag("--man", *man, "the manual page instead, of finetune or a command, for man -l");
  command.add_flag("--markdown", *markdown, "the reference of all commands instead, in Markdown");
  command.footer(kHelpExamples);
  command.callback([program, man, markdown, name] {
    if (*man) write_standard_output(manual(describe(program), *name));
    if (*markdown && !name->empty()) {
      throw usage_error("--markdown is for all commands; leave out ", in_quotes(*name));
    }
    if (*markdown) write_standard_output(reference_page(describe(program)));
  });
}

}  // namespace finetune

#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace gradfuse::cli {
namespace {

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TemporaryFile make_temporary_file() {
  TemporaryFile file(std::tmpfile(), &std::fclose);
  if (file == nullptr) throw std::runtime_error("no temporary file");
  return file;
}

std::string content_of(std::FILE* file) {
  std::string content;
  std::array<char, 4096> buffer;
  std::rewind(file);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file)) {
    content.append(buffer.data(), count);
  }
  return content;
}

/// In the child. The exec'd program does not return.
[[noreturn]] void become_program(const std::vector<std::string>& arguments) {
  std::string program = GRADFUSE_PROGRAM;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

// Files rather than pipes: nobody has to drain two of them at once.
Result run_program(const std::vector<std::string>& arguments, const char* stdout_path) {
  const TemporaryFile out = make_temporary_file(), err = make_temporary_file();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const int target = stdout_path == nullptr ? fileno(out.get()) : open(stdout_path, O_WRONLY);
    if (dup2(target, STDOUT_FILENO) < 0 || dup2(fileno(err.get()), STDERR_FILENO) < 0) _exit(126);
    become_program(arguments);
  }
  Result result{.exit_code = wait_for(child), .out = {}, .err = {}};
  result.out = content_of(out.get());
  result.err = content_of(err.get());
  return result;
}

Result run_in_terminal(const std::vector<std::string>& arguments, const char* term) {
  winsize size{};
  size.ws_row = 25;
  size.ws_col = 100;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    setenv("TERM", term, 1);
    become_program(arguments);
  }
  Result result;
  std::array<char, 4096> buffer;
  // Ends with EIO when the child has closed its side.
  for (ssize_t count; (count = read(terminal, buffer.data(), buffer.size())) > 0;) {
    result.out.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(terminal);
  result.exit_code = wait_for(child);
  return result;
}

}  // namespace gradfuse::cli

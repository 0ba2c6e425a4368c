#pragma once
// How --help looks: choices as a|b|c, defaults in brackets, descriptions wrapped.
#include <CLI/CLI.hpp>

#include <string>

namespace gradfuse::cli {

class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat();
  /// " fp32|fp16|bf16 [fp16]"
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace gradfuse::cli

// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzzing target over files and folders of inputs, without a fuzzer: so
// the corpora are tests for every compiler and under every instrument. Each
// file is named before it runs, so the last one named is the one that failed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace
{

bool run(const std::filesystem::path &path)
{
    printf("%s\n", path.c_str());
    fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
        fprintf(stderr, "replay: cannot read %s\n", path.c_str());
        return false;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()),
                           text.size());
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::filesystem::path> paths;
    for (int i = 1; i < argc; ++i) {
        if (!std::filesystem::is_directory(argv[i])) {
            paths.emplace_back(argv[i]);
            continue;
        }
        for (const auto &entry : std::filesystem::directory_iterator(argv[i])) {
            paths.push_back(entry.path());
        }
    }
    std::sort(paths.begin(), paths.end());
    for (const auto &path : paths) {
        if (!run(path)) {
            return 1;
        }
    }
    printf("%zu inputs\n", paths.size());
    return paths.empty() ? 1 : 0;
}

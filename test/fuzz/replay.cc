// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzzing target over files and folders of inputs, without a fuzzer: so
// the corpora are tests for every compiler and under every instrument. Each
// file is named before it runs, so the last one named is the one that failed.

#include <dirent.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace
{

bool run(const std::string &path)
{
    printf("%s\n", path.c_str());
    fflush(stdout);
    FILE *const file = fopen(path.c_str(), "rb");
    if (!file) {
        perror(path.c_str());
        return false;
    }
    std::vector<uint8_t> input;
    for (int byte = getc(file); byte != EOF; byte = getc(file)) {
        input.push_back(static_cast<uint8_t>(byte));
    }
    fclose(file);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    return true;
}

// The files of a folder in the order of their names, or the file itself.
std::vector<std::string> files_of(const std::string &path)
{
    dirent **entries = nullptr;
    const int count =
        scandir(path.c_str(), &entries, nullptr,
                [](const dirent **a, const dirent **b) {
                    return std::string((*a)->d_name).compare((*b)->d_name);
                });
    if (count < 0) {
        return {path};
    }
    std::vector<std::string> files;
    for (int i = 0; i < count; ++i) {
        const std::string name = entries[i]->d_name;
        if (name != "." && name != "..") {
            files.push_back(path + '/' + name);
        }
        free(entries[i]);
    }
    free(entries);
    return files;
}

} // namespace

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; ++i) {
        for (const std::string &path : files_of(argv[i])) {
            if (!run(path)) {
                return 1;
            }
            ++count;
        }
    }
    printf("%zu inputs\n", count);
    return count == 0 ? 1 : 0;
}

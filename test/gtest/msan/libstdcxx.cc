// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libstdc++ is compiled without MemorySanitizer, which so does not see what its
// functions write. Its templates are instantiated in our code (templates.h);
// what is left are these few, which write to objects of the caller's. Each is
// linked with --wrap (meson.build): it does what it does, and what it has
// written is made known. No memory of Lawn's passes through here: the library
// uses nothing of libstdc++.

#include <ios>
#include <istream>
#include <list>
#include <locale>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

#include <sanitizer/msan_interface.h>

// Begins the function that is called for `symbol`; real_NAME is the original.
#define LAWN_WRAP(symbol, result, name, ...)                                   \
    result real_##name(__VA_ARGS__) __asm__("__real_" symbol);                 \
    result wrap_##name(__VA_ARGS__) __asm__("__wrap_" symbol);                 \
    result wrap_##name(__VA_ARGS__)

#define LAWN_STRING "NSt7__cxx1112basic_stringI"

namespace
{

using Rehash = std::pair<bool, size_t>;

template <class T> void is_written(const T *object)
{
    __msan_unpoison(object, sizeof(*object));
}

void text_is_written(const std::string &text)
{
    is_written(&text);
    __msan_unpoison(text.data(), text.size() + 1);
}

} // namespace

// ---- constructors

LAWN_WRAP("_ZNSt8ios_baseC2Ev", void, ios_base, std::ios_base *self)
{
    real_ios_base(self);
    is_written(self);
}

LAWN_WRAP("_ZNSt6localeC1Ev", void, locale, std::locale *self)
{
    real_locale(self);
    is_written(self);
}

LAWN_WRAP("_ZNSt13runtime_errorC1ERK" LAWN_STRING "cSt11char_traitsIcESaIcEEE",
          void, runtime_error, std::runtime_error *self,
          const std::string &what)
{
    real_runtime_error(self, what);
    is_written(self);
    __msan_unpoison_string(self->what());
}

// std::filesystem::path::_List is private, and a pointer.
LAWN_WRAP("_ZNSt10filesystem7__cxx114path5_ListC1Ev", void, path_list,
          void **self)
{
    real_path_list(self);
    is_written(self);
}

// ---- nodes: those that are there already were written before

LAWN_WRAP("_ZSt29_Rb_tree_insert_and_rebalance"
          "bPSt18_Rb_tree_node_baseS0_RS_",
          void, insert_and_rebalance, bool left, std::_Rb_tree_node_base *node,
          std::_Rb_tree_node_base *parent, std::_Rb_tree_node_base &header)
{
    real_insert_and_rebalance(left, node, parent, header);
    is_written(node);
}

LAWN_WRAP("_ZNSt8__detail15_List_node_base7_M_hookEPS0_", void, hook,
          std::__detail::_List_node_base *self,
          std::__detail::_List_node_base *next)
{
    real_hook(self, next);
    is_written(self);
}

// ---- results

LAWN_WRAP("_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm", Rehash,
          need_rehash, const std::__detail::_Prime_rehash_policy *self,
          size_t buckets, size_t elements, size_t more)
{
    Rehash result = real_need_rehash(self, buckets, elements, more);
    is_written(self);
    is_written(&result);
    return result;
}

// ---- input: these are no templates for char

LAWN_WRAP("_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_"
          "R" LAWN_STRING "S4_S5_T1_EES4_",
          std::istream &, getline, std::istream &from, std::string &line,
          char end)
{
    std::istream &result = real_getline(from, line, end);
    text_is_written(line);
    return result;
}

LAWN_WRAP("_ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_"
          "R" LAWN_STRING "S4_S5_T1_EE",
          std::istream &, extract, std::istream &from, std::string &word)
{
    std::istream &result = real_extract(from, word);
    text_is_written(word);
    return result;
}

// ---- what hands memory of its own to libc, which is watched

LAWN_WRAP("_ZNKSt5ctypeIcE13_M_widen_initEv", void, widen_init,
          const std::ctype<char> *self)
{
    __msan_scoped_disable_interceptor_checks();
    real_widen_init(self);
    __msan_scoped_enable_interceptor_checks();
}

LAWN_WRAP("_ZNSt12__basic_fileIcE8xsputn_2EPKclS2_l", std::streamsize, xsputn_2,
          void *self, const char *first, std::streamsize first_size,
          const char *second, std::streamsize second_size)
{
    __msan_scoped_disable_interceptor_checks();
    const std::streamsize size =
        real_xsputn_2(self, first, first_size, second, second_size);
    __msan_scoped_enable_interceptor_checks();
    return size;
}

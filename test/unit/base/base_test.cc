// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Status codes and the version.

#include <lawn/base.h>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace
{

TEST(Status, EachHasATextOfItsOwn)
{
    std::set<std::string> texts;
    for (int status = LAWN_ERR_CORRUPT; status <= LAWN_OK; ++status) {
        texts.insert(lawn_status_string(static_cast<lawn_status_t>(status)));
    }
    EXPECT_EQ(texts.size(), 9U);
    for (const int status : {1, LAWN_ERR_CORRUPT - 1}) {
        EXPECT_STREQ(lawn_status_string(static_cast<lawn_status_t>(status)),
                     "unknown status");
    }
    EXPECT_EQ(texts.count("unknown status"), 0U);
}

TEST(Version, IsThatOfTheHeaders)
{
    EXPECT_STREQ(lawn_version(), LAWN_VERSION_STRING);
    EXPECT_EQ(std::to_string(LAWN_VERSION_MAJOR) + '.' +
                  std::to_string(LAWN_VERSION_MINOR) + '.' +
                  std::to_string(LAWN_VERSION_PATCH),
              LAWN_VERSION_STRING);
}

TEST(Base, ContainerOfAMember)
{
    struct Inner {
        char byte;
        int members[3];
    };
    struct Object {
        char name;
        double first;
        Inner inner;
    };
    Object object = {};
    EXPECT_EQ(lawn_container_of(&object.name, Object, name), &object);
    EXPECT_EQ(lawn_container_of(&object.inner, Object, inner), &object);
    EXPECT_EQ(
        lawn_container_of(&object.inner.members[1], Object, inner.members[1]),
        &object);
    const double *const first = &object.first;
    EXPECT_EQ(lawn_container_of(first, Object, first), &object);
}

} // namespace

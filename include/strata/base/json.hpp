// nlohmann's JSON. In a program without exceptions its failures end the program as strata's own do.
#pragma once
#include <strata/base/error.hpp>

#if !defined(__cpp_exceptions) && !defined(JSON_THROW_USER)
#ifdef INCLUDE_NLOHMANN_JSON_HPP_
#error \
    "without exceptions, include strata's headers before nlohmann/json.hpp: otherwise its failures end the program without a word"
#endif
#define JSON_THROW_USER(failure) ::strata::throw_exception(failure)
#define JSON_TRY_USER if (true)
#define JSON_CATCH_USER(failure) if (false)
#endif
#include <nlohmann/json.hpp>

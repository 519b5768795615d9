# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#
# For ci/test, which sources it: steps with logs, in lanes side by side; and what
# their reports say. It keeps all in $logs.
#
# A case that depends on real time or on another process can fail because the
# machine is busy. So the run goes on, and when all else is over such a case is
# run again, alone, three times. If it passes each time, it counts as unstable,
# and the last lines name it. No other case is ever run again, and more than a
# few of these fail the run at once.
# shellcheck shell=bash
shopt -s nullglob

logs=$PWD/build-logs
counts=$logs/counts     # a line of each step: passed, failed
taken=$logs/taken       # a directory of each shared step that a lane has taken
again=$logs/again       # how each case was run that is to run again
unstable=$logs/unstable # a line of each that passed then
most_unstable=3
step=
title=
lanes=()
shared=() # steps that any lane may take

# Sets $processor to the seconds of a processor that the steps of this lane
# have taken: of its children, in hundredths, proc(5).
processor_time() {
    local stat
    read -r stat <"/proc/$BASHPID/stat"
    # shellcheck disable=SC2086 # words
    set -- ${stat##*) }
    processor=$(((${14} + ${15}) / 100))
}

# announce NAME TEXT: begins a step; its log and report carry the name.
announce() {
    step=$1
    title=$2
    started=$SECONDS
    processor_time
    processor_started=$processor
}

# Two lanes share the processors: how long a step takes says little of its cost.
finish() {
    processor_time
    printf '%5d s %5d cpu s  %s%s\n' $((SECONDS - started)) \
        $((processor - processor_started)) "$title" "${1:+: $1}"
}

fail() {
    {
        printf '==> FAILED after %d s: %s\n' $((SECONDS - started)) "$title"
        printf '%s; its output is in build-logs/%s.log\n' "$1" "$step"
        grep -n -m 20 -A 8 -E 'Failure$|FAILED|ERROR|SUMMARY|error:' \
            "$logs/$step.log" || true
        echo '--- the end of it:'
        tail -n 40 "$logs/$step.log"
    } >&2
    exit 1
}

# The end of every run, good or bad.
conclude() {
    local status=$? passed failed lane
    trap - EXIT
    for lane in "${lanes[@]}"; do
        kill -- "-$lane" 2>/dev/null || true
    done
    read -r passed failed < <(
        awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$counts"
    )
    if ((status != 0 && failed == 0)); then
        failed=1
    fi
    [[ $thorough ]] || printf 'Left to ci/test --thorough:\n%s\n' "$rest"
    if [[ -s $unstable ]]; then
        echo "$(wc -l <"$unstable") unstable, which failed once and then passed" \
            "three times alone:"
        cat "$unstable"
    fi
    echo "$passed passed, $failed failed"
    exit "$status"
}

# lane [STEP...]: runs steps one after the other, beside other lanes; then those
# shared steps that no lane has taken, until none is left, so that no processor
# idles. Only the lane's own steps care when they get a processor.
lane() {
    (
        set +m
        for run in "$@"; do
            "$run"
        done
        renice -n 5 "$BASHPID" >/dev/null
        for run in "${shared[@]}"; do
            if mkdir "$taken/$run" 2>/dev/null; then
                # shellcheck disable=SC2086 # words
                $run
            fi
        done
    ) &
    lanes+=($!)
}

# Runs a command that is no test, with its output in the log.
quietly() {
    "$@" </dev/null >>"$logs/$step.log" 2>&1 || fail "$*"
}

# counted REPORT COMMAND...: runs a command that writes a JUnit report, and
# counts the cases in it. The command's status decides together with the report:
# a program that crashed has written none.
counted() {
    local report=$1 status=0 good=0 bad=0 later=0 failures=() failure
    shift
    rm -f "$report"
    "$@" </dev/null >>"$logs/$step.log" 2>&1 || status=$?
    if [[ -s $report ]]; then
        mapfile -t failures < <(ci/count "$report")
        read -r good bad <<<"${failures[0]-}" || fail "unreadable $report"
    fi
    for failure in "${failures[@]:1}"; do
        ! put_off "$failure" "$report" "$@" || ((++later))
    done
    if ((bad == 0 && (status != 0 || good == 0))); then
        bad=1
    fi
    echo "$good $((bad - later))" >>"$counts"
    if ((bad > later)); then
        fail "$* (status $status)"
    fi
    if ((later == 0)); then
        finish "$good passed"
    else
        finish "$good passed, $later to run again"
    fi
}

# put_off "SUITES PROGRAM CASE" REPORT COMMAND...: if a case that failed may
# have done so because the machine is busy, keeps how to run it alone; false if
# not. $runner tells how the command is told to run one case.
put_off() {
    local suites program name report=$2 arguments kept
    read -r suites program name <<<"$1"
    shift 2
    case ${runner-},+$suites+ in
    meson,*+live+*) arguments=("$program" "--test-args=--gtest_filter=$name") ;;
    gtest,*) arguments=("--gtest_filter=$name") ;;
    *) return 1 ;;
    esac
    {
        export -p
        declare -p step title name report
        printf 'command=('
        printf '%q ' "$@" "${arguments[@]}"
        echo ')'
    } >"$(mktemp "$again/XXXXXX")"
    kept=("$again"/*)
    ((${#kept[@]} <= most_unstable)) ||
        fail "more than $most_unstable unstable cases"
}

# run_again FILE: a case that was put off, when nothing else runs.
run_again() {
    local i command good bad
    # shellcheck disable=SC1090 # put_off() has written it
    . "$1"
    # shellcheck disable=SC2154 # name, report: are in there
    local first=$title
    announce "$step-again" "again, alone: $name"
    for i in 1 2 3; do
        rm -f "$report"
        quietly "${command[@]}"
        read -r good bad < <(ci/count "$report") || fail "no $report"
        [[ $good == 1 && $bad == 0 ]] || fail "$name: $good passed, not one"
    done
    echo "  $name ($first)" >>"$unstable"
    echo "1 0" >>"$counts"
    finish "passed $i times"
}

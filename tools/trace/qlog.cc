// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See qlog.h. A trace has no packets: each transmission that it knows of counts
// as one, in the order of time, and is of QUIC's 1RTT type, which such tools
// look at. What has no event of its own in qlog is a generic:info.

#include "qlog.h"

#include "json.h"

#include <algorithm>
#include <utility>

namespace trace_file
{

namespace
{

struct Record {
    Time time;
    std::string text; // from the name of the event on
};

class Writer
{
public:
    explicit Writer(const Connection &connection) : connection_(connection)
    {
        for (const Marked &mark : connection.marks) {
            if (is_transmission(mark.mark)) {
                sent_at_.push_back(mark.ticks);
            }
        }
    }

    void append_to(std::vector<Record> *records)
    {
        for (const Marked &mark : connection_.marks) {
            append_mark(mark);
        }
        append_timer();
        append_metrics();
        std::move(records_.begin(), records_.end(),
                  std::back_inserter(*records));
    }

private:
    static bool is_resending(Mark mark)
    {
        return mark == Mark::by_evidence || mark == Mark::by_silence ||
               mark == Mark::unneeded;
    }

    static bool is_transmission(Mark mark)
    {
        return mark == Mark::send || is_resending(mark) || mark == Mark::ask ||
               mark == Mark::probe;
    }

    void add(Time time, const char *name, const std::string &data)
    {
        std::string text = "\"name\":\"";
        text += name;
        text += "\",\"group_id\":";
        append_name(&text, connection_.name);
        text += ",\"data\":{" + data + "}}";
        records_.push_back({time, std::move(text)});
    }

    static std::string header(size_t number)
    {
        return "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":" +
               std::to_string(number) + "}";
    }

    // The first packet that was sent then; the count of packets if none was.
    size_t number_of(uint64_t sent_at) const
    {
        const auto at =
            std::lower_bound(sent_at_.begin(), sent_at_.end(), sent_at);
        return at != sent_at_.end() && *at == sent_at
                   ? static_cast<size_t>(at - sent_at_.begin())
                   : sent_at_.size();
    }

    void add_sent(Time time, const std::string &more)
    {
        add(time, "transport:packet_sent", header(next_++) + more);
    }

    void add_resent(const Marked &mark)
    {
        const size_t lost = number_of(mark.sent_at);
        if (lost < next_) {
            add(mark.time, "recovery:packet_lost",
                header(lost) + ",\"trigger\":" +
                    (mark.by_evidence ? "\"time_threshold\""
                                      : "\"pto_expired\""));
        }
        add_sent(mark.time, std::string(",\"trigger\":") +
                                (mark.by_evidence ? "\"retransmit_timeout\""
                                                  : "\"pto_probe\""));
        if (mark.mark == Mark::unneeded) {
            add_info(mark.time + mark.value,
                     "the latest retransmission was not needed");
        }
    }

    void add_received(const Marked &mark)
    {
        std::string data = header(received_++);
        const size_t number = number_of(mark.sent_at);
        if (number < sent_at_.size()) {
            const std::string range = std::to_string(number);
            data += ",\"frames\":[{\"frame_type\":\"ack\",\"acked_ranges\":[[" +
                    range + "," + range + "]]}]";
        }
        add(mark.time, "transport:packet_received", data);
    }

    void add_info(Time time, const char *message)
    {
        std::string data = "\"message\":";
        append_quoted(&data, message);
        add(time, "generic:info", data);
    }

    void append_mark(const Marked &mark)
    {
        switch (mark.mark) {
        case Mark::send:
            add_sent(mark.time, "");
            break;
        case Mark::ack:
            add_received(mark);
            break;
        case Mark::ask:
        case Mark::probe:
            add_sent(mark.time, ",\"frames\":[{\"frame_type\":\"ping\"}]");
            break;
        case Mark::excuse:
            add_info(mark.time, "a stall of the program is excused");
            break;
        case Mark::undo:
            add_info(mark.time, "the back-off is taken back");
            break;
        case Mark::dead:
            add(mark.time, "connectivity:connection_closed",
                "\"owner\":\"local\",\"trigger\":\"idle_timeout\"");
            break;
        default:
            add_resent(mark);
            break;
        }
    }

    void append_timer()
    {
        for (const Point &point : connection_.timer) {
            std::string data = "\"timer_type\":\"pto\",\"event_type\":";
            if (point.value == 0) {
                data += "\"cancelled\"";
            } else if (point.value == never) {
                data += "\"expired\"";
            } else {
                data += "\"set\",\"delta\":";
                append_msec(&data,
                            std::max(point.value, point.time) - point.time);
            }
            add(point.time, "recovery:loss_timer_updated", data);
        }
    }

    // Those that have changed.
    void append_metrics()
    {
        uint64_t least = never;
        const Metrics *before = nullptr;
        for (const Metrics &now : connection_.metrics) {
            std::string data;
            const auto field = [&](const char *name, uint64_t ns) {
                data += data.empty() ? "\"" : ",\"";
                data += name;
                data += "\":";
                append_msec(&data, ns);
            };
            if (now.srtt != 0 && (!before || now.srtt != before->srtt)) {
                field("smoothed_rtt", now.srtt);
            }
            if (now.srtt != 0 && (!before || now.rttvar != before->rttvar)) {
                field("rtt_variance", now.rttvar);
            }
            if (now.rtt != 0) {
                field("latest_rtt", now.rtt);
            }
            if (now.rtt != 0 && now.rtt < least) {
                least = now.rtt;
                field("min_rtt", least);
            }
            if (!data.empty()) {
                add(now.time, "recovery:metrics_updated", data);
            }
            before = &now;
        }
    }

    const Connection &connection_;
    std::vector<uint64_t> sent_at_; // in ticks, by the number of the packet
    size_t next_ = 0;               // packet to be sent
    size_t received_ = 0;
    std::vector<Record> records_;
};

} // namespace

std::string qlog_of(const Model &model, const std::string &title,
                    uint64_t connection)
{
    std::vector<Record> records;
    for (const Connection &each : model.connections) {
        if (connection == 0 || each.name == connection) {
            Writer(each).append_to(&records);
        }
    }
    std::stable_sort(
        records.begin(), records.end(),
        [](const Record &a, const Record &b) { return a.time < b.time; });
    std::string out = "\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":"
                      "\"JSON-SEQ\",\"title\":";
    append_quoted(&out, title);
    out += ",\"trace\":{\"common_fields\":{\"protocol_type\":[\"QUIC\"],"
           "\"time_format\":\"relative\",\"reference_time\":0},"
           "\"vantage_point\":{\"name\":\"lawn\",\"type\":\"unknown\"}}}\n";
    for (const Record &record : records) {
        out += "\x1e{\"time\":";
        append_msec(&out, record.time);
        out += "," + record.text + "\n";
    }
    return out;
}

} // namespace trace_file

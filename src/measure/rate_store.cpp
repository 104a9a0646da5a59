#include "measure/rate_store.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>

#include "core/plain_bytes.hpp"
#include "data/checksum.hpp"
#include "data/file_cache.hpp"
#include "execute/lanes/cpus.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

constexpr const char* stored = ", stored ";

// A file has the date, these with the choices of a plan behind each, and the calls.
struct Record {
    KernelRate rate;
    Index extents;
    double spread;
    std::array<char, 128> note;
};

// A part of all keys: equal where records have the same bytes for the same values.
constexpr const char* form = "\nrates 3"
#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) ", " #type " " #name
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    ;

// But for weights: tiles take as long whoever has them.
void put_choices(std::string& out, const Plan& plan) {
    const auto put_choice = [&]<class T>(const T& value) {
        if constexpr (!std::is_same_v<T, Weights>) put(out, value);
    };
#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) put_choice(plan.name);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
}

Plan take_choices(PlainBytes& bytes) {
    Plan plan;
    const auto take_choice = [&]<class T>(T& value) {
        if constexpr (!std::is_same_v<T, Weights>) value = bytes.take<T>();
    };
#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) take_choice(plan.name);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    return plan;
}

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line;
    return {};
}

}  // namespace

// Nothing where the file is too old.
std::string RateStore::data_of(const std::string& key) const {
    const std::string data = file_cache::find(key + "\n" + *launch + form, ".rates").value_or("");
    if (data.empty()) return data;
    const std::time_t age_s = date() - PlainBytes(data).take<std::time_t>();
    return age_s >= 0 && age_s <= tuning::most_rate_age_s ? data : std::string();
}

bool is_stored(const MeasuredRate& rate) {
    return rate.note.find(stored) != std::string::npos;
}

BodyRates RateStore::read(Context& context, const std::string& key) {
    std::string data = key.empty() || context.rank() > 0 ? "" : data_of(key);
    broadcast(context.transport(), data, 0);
    BodyRates body;
    if (data.empty()) return body;
    PlainBytes bytes(data);
    const auto date = bytes.take<std::time_t>();
    body.date = date;
    std::tm local{};
    char text[32] = "";
    if (localtime_r(&date, &local)) std::strftime(text, sizeof text, "%F %R", &local);
    for (auto left = bytes.take<std::size_t>(); left > 0; --left) {
        const Plan plan = take_choices(bytes);
        const auto r = bytes.take<Record>();
        body.rates.push_back({plan, r.rate, false, r.note.data(), r.extents, r.spread});
        if (!is_stored(body.rates.back())) body.rates.back().note += stored + std::string(text);
    }
    body.calls = bytes.take_all<PlannedCall>();
    return body;
}

void RateStore::store(const std::string& key, const BodyRates& body) {
    const auto is_no_rate = [](const MeasuredRate& m) { return m.note.starts_with(not_measured); };
    if (key.empty() || std::ranges::any_of(body.rates, is_no_rate)) return;
    std::string data;
    put(data, body.date ? body.date : date());
    put(data, body.rates.size());
    for (const MeasuredRate& m : body.rates) {
        Record record{m.rate, m.extents, m.spread, {}};
        m.note.copy(record.note.data(), record.note.size() - 1);
        put_choices(data, m.plan);
        put(data, record);
    }
    put(data, body.calls);
    file_cache::store(key + "\n" + *launch + form, ".rates", data);
}

std::string launch_text(Context& context) {
    if (!context.transport().connected()) return {};
    const Place place = Place::here(0);
    const std::string here = place.name + ", " + std::to_string(place.cpus.size()) + " CPUs, " + cpu_model() + "\n";
    std::string all;
    for (const Given& some : allgather(context.transport(), here)) all += std::to_string(some.ranks) + " " + some.text;
    return std::to_string(context.size()) + " ranks, " + std::to_string(context.threads()) + " threads, hosts " +
           std::to_string(checksum(std::as_bytes(std::span(all)).data(), static_cast<std::int64_t>(all.size())));
}

double queued_s() {
    double total_ns = 0, ran_ns = 0, queued_ns = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
         task.increment(error)) {
        std::ifstream file(task->path() / "schedstat");  // none of a thread that has ended meanwhile
        if (file >> ran_ns >> queued_ns) total_ns += queued_ns;
    }
    return total_ns * 1e-9;
}

}  // namespace tilewave

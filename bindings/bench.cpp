// For benchmarks: the message library's own collectives, as someone would call them by hand.
#include <cstring>

#include "casters.hpp"
#include "execute/executor.hpp"
#include "generate/sweep/sweep.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/predict.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

namespace {

// A row at a time, as packing by hand is usually written.
void copy_rows(const MatrixView& to, const MatrixView& from) {
    for (std::int64_t i = 0; i < from.rows; ++i)
        std::memcpy(to.data + i * to.row_stride_bytes, from.data + i * from.row_stride_bytes,
                    static_cast<std::size_t>(from.row_bytes()));
}

MatrixView part_of(MatrixView m, std::int64_t first, std::int64_t count) {
    m.data += first * m.item_bytes();
    m.cols = count;
    return m;
}

/// One collective of the library, prepared; by derived datatype, or with strided matrices packed by hand.
class NativeRun {
public:
    NativeRun(Context& context, NativeCall call, bool packed)
        : context_(context), call_(std::move(call)), used_(call_), packed_(packed) {
        used_.blocking = true;
        const PatternKind kind = call_.kind;
        gets_ = kind != PatternKind::broadcast && (kind != PatternKind::reduce || context.rank() == call_.root);
        if (!packed_) return;
        const bool gives_parts = kind == PatternKind::multi_reduce, gets_parts = kind == PatternKind::spread;
        used_.parts = gets_parts;
        if (gives_parts || !call_.in.contiguous()) used_.in = dense(call_.in, given_);
        if (gets_ && (gets_parts || !call_.out.contiguous())) used_.out = dense(call_.out, got_);
    }
    void run() {
        const PatternKind kind = call_.kind;
        const bool root = context_.rank() == call_.root;
        if (used_.in.data != call_.in.data && (kind != PatternKind::broadcast || root)) {
            if (kind == PatternKind::multi_reduce)
                parts(call_.in, used_.in.data, true);
            else
                copy_rows(used_.in, call_.in);
        }
        context_.transport().post_native(0, used_);
        done_.clear();
        while (done_.empty()) context_.transport().poll(done_);
        if (kind == PatternKind::broadcast) {
            if (!root && used_.in.data != call_.in.data) copy_rows(call_.in, used_.in);
        } else if (gets_ && used_.out.data != call_.out.data) {
            if (kind == PatternKind::spread)
                parts(call_.out, used_.out.data, false);
            else
                copy_rows(call_.out, used_.out);
        }
    }

private:
    static MatrixView dense(MatrixView m, std::vector<std::byte>& memory) {
        memory.resize(m.bytes());
        m.data = memory.data();
        m.row_stride_bytes = m.row_bytes();
        return m;
    }
    void parts(const MatrixView& whole, std::byte* data, bool pack) {
        std::int64_t first = 0;
        for (std::int64_t n : call_.columns) {
            const MatrixView part = part_of(whole, first, n);
            MatrixView flat = part;
            flat.data = data;
            flat.row_stride_bytes = part.row_bytes();
            pack ? copy_rows(flat, part) : copy_rows(part, flat);
            data += part.bytes();
            first += n;
        }
    }

    Context& context_;
    NativeCall call_, used_;
    bool packed_, gets_ = false;
    std::vector<std::byte> given_, got_;
    std::vector<int> done_;
};

/// One message of the library from one rank to another, with an answer when it is there.
class NativeSend {
public:
    NativeSend(Context& context, MatrixView matrix, int from, int to, bool packed, bool buffered)
        : context_(context),
          matrix_(matrix),
          from_(from),
          to_(to),
          packed_(packed && !matrix.contiguous()),
          buffered_(buffered) {
        if (packed_) memory_.resize(matrix.bytes());
    }
    void run() {
        if (context_.rank() != from_ && context_.rank() != to_) return;
        MatrixView used = matrix_;
        if (packed_) {
            used.data = memory_.data();
            used.row_stride_bytes = used.row_bytes();
        }
        const bool sends = context_.rank() == from_;
        if (packed_ && sends) copy_rows(used, matrix_);
        Transport& t = context_.transport();
        t.post_native_message(0, used, sends, sends ? to_ : from_, buffered_);
        std::vector<int> done;
        while (done.empty()) t.poll(done);
        if (packed_ && !sends) copy_rows(matrix_, used);
    }

private:
    Context& context_;
    MatrixView matrix_;
    int from_, to_;
    bool packed_, buffered_;
    std::vector<std::byte> memory_;
};

// Seconds that predict() alone takes for the schedules of all ranks, and their steps.
std::pair<std::int64_t, std::vector<double>> predict_times(const SweepProblem& problem, const Plan& plan,
                                                           const Machine& machine, bool record, int times) {
    std::vector<Schedule> schedules;
    std::int64_t ranks = 1, steps = 0;
    for (auto g : plan.grid) ranks *= g;
    for (int r = 0; r < ranks; ++r) steps += schedules.emplace_back(sweep(problem, plan, r)).steps();
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
        const double begin = now_s();
        predict(schedules, machine, {}, {PredictOptions().poll_period_s, record});
        seconds.push_back(now_s() - begin);
    }
    return {steps, seconds};
}

}  // namespace

void bind_bench(nb::module_& m) {
    m.def("predict_times", &predict_times, "problem"_a, "plan"_a, "machine"_a, "record"_a, "times"_a,
          nb::call_guard<nb::gil_scoped_release>(), "(steps of all ranks, seconds of each prediction).");
    nb::class_<NativeRun>(m, "NativeRun", "A collective of the MPI library itself, to compare with.")
        .def(
            "__init__",
            [](NativeRun* r, Context& context, const std::string& kind, MatrixView in, std::optional<MatrixView> out,
               std::vector<std::int64_t> columns, bool packed) {
                NativeCall c;
                for (PatternKind k :
                     {PatternKind::broadcast, PatternKind::reduce, PatternKind::spread, PatternKind::multi_reduce})
                    if (kind == to_string(k)) c.kind = k;
                c.in = in;
                if (out) c.out = *out;
                c.columns = std::move(columns);
                new (r) NativeRun(context, std::move(c), packed);
            },
            "context"_a, "kind"_a, "matrix"_a, "out"_a.none(), "columns"_a, "packed"_a, nb::keep_alive<1, 2>())
        .def("run", &NativeRun::run, nb::call_guard<nb::gil_scoped_release>());
    nb::class_<NativeSend>(m, "NativeSend", "A message of the MPI library itself, to compare with.")
        .def(nb::init<Context&, MatrixView, int, int, bool, bool>(), "context"_a, "matrix"_a, "from_rank"_a, "to"_a,
             "packed"_a, "buffered"_a, nb::keep_alive<1, 2>())
        .def("run", &NativeSend::run, nb::call_guard<nb::gil_scoped_release>());
}

"""Functions of a strip of numbers in memory, as functions of a module under construction."""

from llvmlite import ir

from tilewave.kernel.emit.literal_powers import powers_of_strip
from tilewave.kernel.emit.loops import vector_function
from tilewave.kernel.types.emitting import CountedLoop
from tilewave.kernel.types.values import I8, I64, POINTER, ir_type

#: A strip is computed whole where one point in so many needs it; else only the points that do.
WHOLE_FROM = 4

#: Exponents up to this size that are halves may be special to NumPy, but only where one exponent is given for all.
SPECIAL_EXPONENTS = 4.0


def compute(e, function, rooms, count):
    """Call a function for a strip: ``rooms`` are its operands, its result, and where points need it, if not all do."""
    *operands, result, needed = rooms
    of_all = _made(e, function, "all", _of_all)
    if needed is None:
        e.builder.call(of_all, [*operands, result, count])
        return
    e.builder.call(_made(e, function, "some", _of_some), [*operands, needed, result, count])


def _made(e, function, which, emit):
    """The function of the module, which `emit` makes where it is not there: of operands, result and count."""
    pointers = function.operands + 1 + (which == "some")
    name = f"strip_{which}_{function.kind}_{function.name}_{function.dtype.name}"
    found = e.builder.module.globals.get(name)
    if found is None:
        kind = ir.FunctionType(ir.VoidType(), [*[POINTER] * pointers, I64])
        found = ir.Function(e.builder.module, kind, name)
        found.linkage = "internal"
        outer, e.builder = e.builder, ir.IRBuilder(found.append_basic_block("entry"))
        emit(e, function, found)
        e.builder.ret_void()
        e.builder = outer
    return found


def _of_all(e, function, made):
    *operands, result, count = made.args
    vectors = _vectors(function)
    if vectors is not None:
        _by_vectors(e, function, made, *vectors)
    elif function.kind == "numpy" and function.name == "power":
        _powers(e, function, made)
    elif function.kind == "power":
        powers_of_strip(e, function, *operands, result, count)
    elif function.kind == "numpy":
        _numpy_loop(e, function, operands, result, count)
    else:
        kind = ir_type(function.dtype)
        with CountedLoop(e.builder, "point", I64(0), count) as q:
            values = [e.builder.load(_at(e, each, kind, q), typ=kind) for each in operands]
            e.builder.store(e.builder.call(e.c_function(function), values), _at(e, result, kind, q))


def _at(e, room, kind, q):
    return e.builder.gep(room, [q], source_etype=kind)


# NumPy's loops.


def _numpy_loop(e, function, operands, result, count, steps=None):
    """Call NumPy's loop; ``steps`` are the numbers from point to point of each operand, and of the result."""
    build, item = e.builder, function.dtype.itemsize
    loop, data = e.numpy_loop(function)
    pointers = [*operands, result]
    steps = steps or [1] * len(pointers)
    with build.goto_entry_block():
        arguments, points, strides = (build.alloca(POINTER, size=size) for size in (3, 1, 3))
    build.store(count, points)
    for k, (pointer, step) in enumerate(zip(pointers, steps, strict=True)):
        build.store(pointer, build.gep(arguments, [I64(k)], source_etype=POINTER))
        build.store(I64(step * item), build.gep(strides, [I64(k)], source_etype=I64))
    build.call(loop, [arguments, points, strides, data])


def _powers(e, function, made):
    """np.power: NumPy computes ``x ** 2`` and the like in another way where it knows that all exponents are equal, as
    it does of one number.
    """
    base, exponent, result, count = made.args
    build, kind, bits = e.builder, ir_type(function.dtype), ir.IntType(8 * function.dtype.itemsize)
    first = build.load(exponent, typ=bits)
    loop = CountedLoop(build, "exponent", I64(0), count)
    with loop as q:
        differ = build.phi(bits)
        differ.add_incoming(bits(0), loop.before)
        here = build.xor(build.load(_at(e, exponent, bits, q), typ=bits), first)
        found = build.or_(differ, here)
        differ.add_incoming(found, build.block)
    with build.if_else(build.icmp_unsigned("==", found, bits(0))) as (equal, several):
        with equal:
            _numpy_loop(e, function, [base, exponent], result, count, steps=[1, 0, 1])
        with several:
            _numpy_loop(e, function, [base, exponent], result, count)
            with CountedLoop(build, "special", I64(0), count) as q:
                at = [_at(e, each, kind, q) for each in (base, exponent, result)]
                value = build.load(at[1], typ=kind)
                double = build.fadd(value, value)
                half = build.fcmp_ordered("==", e.intrinsic("rint", double), double)
                small = build.fcmp_ordered("<=", e.intrinsic("fabs", value), kind(SPECIAL_EXPONENTS))
                with build.if_then(build.and_(half, small)):
                    _numpy_loop(e, function, at[:2], at[2], I64(1), steps=[0, 0, 0])


# The C library's functions of vectors.


def _vectors(function):
    """(lanes, linker symbol) of the function of whole vectors, where there is one."""
    if function.kind != "fast":
        return None
    name = function.name if function.dtype.itemsize == 8 else f"{function.name}f"
    return vector_function(name, function.operands, 8 * function.dtype.itemsize)


def _by_vectors(e, function, made, lanes, symbol):
    """All points, and up to a vector of what is behind them."""
    *operands, result, count = made.args
    build, kind = e.builder, ir_type(function.dtype)
    vector = ir.VectorType(kind, lanes)
    width = 8 * function.dtype.itemsize * lanes
    made.attributes.add("noinline")
    for name in ("min-legal-vector-width", "prefer-vector-width"):
        set.add(made.attributes, f'"{name}"="{width}"')  # llvmlite's `add` knows no attributes of a target
    called = e.outside(symbol, ir.FunctionType(vector, [vector] * function.operands))
    with CountedLoop(build, "vector", I64(0), count, lanes) as q:
        values = [build.load(_at(e, each, kind, q), typ=vector, align=function.dtype.itemsize) for each in operands]
        build.store(build.call(called, values), _at(e, result, kind, q), align=function.dtype.itemsize)


# Some of the points.


def _of_some(e, function, made):
    """Runs of points that need the function, one after the other; all at once where they are many."""
    *operands, needed, result, count = made.args
    build, kind = e.builder, ir_type(function.dtype)
    of_all = _made(e, function, "all", _of_all)
    if function.kind != "c":
        loop = CountedLoop(build, "count", I64(0), count)
        with loop as q:
            so_far = build.phi(I64)
            so_far.add_incoming(I64(0), loop.before)
            total = build.add(so_far, build.zext(build.load(_at(e, needed, I8, q), typ=I8), I64))
            so_far.add_incoming(total, build.block)
        many = build.icmp_signed(">=", build.mul(total, I64(WHOLE_FROM)), count)
        with build.if_then(many):
            build.call(of_all, [*operands, result, count])
            build.ret_void()
        # `if_then` leaves a block behind that is not reached from within.
    before = build.block
    look, run, grow, ready, done = (made.append_basic_block(name) for name in ("look", "run", "grow", "ready", "done"))
    build.branch(look)
    build.position_at_end(look)
    q = build.phi(I64)
    q.add_incoming(I64(0), before)
    inside = build.icmp_signed("<", q, count)
    there = made.append_basic_block("there")
    build.cbranch(inside, there, done)
    build.position_at_end(there)
    one = build.icmp_unsigned("!=", build.load(_at(e, needed, I8, q), typ=I8), I8(0))
    skipped = made.append_basic_block("skipped")
    following = build.add(q, I64(1))
    build.cbranch(one, run, skipped)
    build.position_at_end(skipped)
    q.add_incoming(following, build.block)
    build.branch(look)
    build.position_at_end(run)
    end = build.phi(I64)
    end.add_incoming(following, there)
    build.cbranch(build.icmp_signed("<", end, count), grow, ready)
    build.position_at_end(grow)
    again = build.icmp_unsigned("!=", build.load(_at(e, needed, I8, end), typ=I8), I8(0))
    end.add_incoming(build.add(end, I64(1)), build.block)
    build.cbranch(again, run, ready)
    build.position_at_end(ready)
    build.call(of_all, [*(_at(e, each, kind, q) for each in [*operands, result]), build.sub(end, q)])
    q.add_incoming(end, build.block)
    build.branch(look)
    build.position_at_end(done)

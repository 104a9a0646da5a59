"""Names that carry elements from turn to turn, ``before = y[i, j]``: the elements in their place."""

import ast
import copy

from tilewave.loops.dependences import domain, may_follow, row_of
from tilewave.loops.liveness import names_read, needs
from tilewave.loops.systems import add, may_hold
from tilewave.loops.tree import Access, Group, Stays, Tree, access_of, linear
from tilewave.nest.inner_loops import is_element
from tilewave.nest.region import Region
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import Put, assigned, elements_in, names_stored

#: Turns back of which a name may have the value.
MOST_BACK = 4


class Carried:
    """A region whose statements are changed: what they access, and names that they carry along."""

    def _begin(self, region, statements):
        self.region = Region(region.source, region.function, statements, region.local_names)
        self.tree = Tree(self.region)
        self.loops = {id(loop.node): loop for group in self.tree.groups for loop in group.path}
        self.indices = {loop.index for loop in self.loops.values()}

    def _blocks(self, statements, path=()):
        """(statements, path) of the bodies of all loops, and of all around them."""
        yield statements, path
        for node in statements:
            if isinstance(node, ast.For) and id(node) in self.loops:
                yield from self._blocks(node.body, (*path, self.loops[id(node)]))

    def _elements(self, statements, path):
        """(element, path) of all that statements access."""
        for node in statements:
            if isinstance(node, ast.For) and id(node) in self.loops:
                yield from self._elements(node.body, (*path, self.loops[id(node)]))
            else:
                yield from ((each, path) for each in elements_in(node))

    def _access(self, node, path):
        """The access of an element; None where a subscript is computed."""
        known = {loop.index for loop in path} | (self.numbers.keys() - self.tree.assigned)
        forms = [linear(part, known.__contains__) for part in subscripts_of(node)]
        return None if any(form is None for form in forms) else access_of(node, forms)

    def _may_meet(self, node, others, path):
        """Return whether an element may be accessed by others, in one turn of all loops of a path."""
        access = self._access(node, path)
        for other, there in others:
            if other.value.id == node.value.id:
                found = self._access(other, there)
                if access is None or found is None:
                    return True
                pairs = zip(access.subscripts, found.subscripts, strict=True)
                if may_hold([add(row_of(a), row_of(b), -1) for a, b in pairs], domain(there)):
                    return True
        return False

    # ``before = y[i, j]`` at the end of a turn: what a name has of the turns before.

    def _with_carried(self, statements):
        changed = False
        for block, path in [*self._blocks(statements)]:
            for node in [each for each in block if isinstance(each, ast.For) and id(each) in self.loops]:
                changed |= self._without_carried(node, block, path)
        self.guarded = changed
        return statements if changed else None

    def _without_carried(self, node, block, path):
        loop, place = self.loops[id(node)], block.index(node)
        carried = sorted(needs(node.body)[0] & stored_by(ast.Module(node.body, [])) - self.tree.tables)
        again = needs(block)[0] | needs(block[place + 1 :])[0] | self.live
        at = {name: [k for k, part in enumerate(node.body) if name in stored_by(part)] for name in carried}
        first = {name: self._first(name, block[:place]) for name in carried}
        if not carried or abs(loop.step) != 1 or len(loop.begins) > 1 or again & {*carried}:
            return False
        if any(len(places) != 1 or assigned(node.body[places[0]]) != name for name, places in at.items()):
            return False
        ends = {name: node.body[at[name][0]].value for name in carried}
        if None in first.values() or not all(self._is_copy(ends[n], node, at[n][0], path, carried) for n in carried):
            return False

        def begins(name, back):
            """The value of a name when a turn begins, so many turns back."""
            if back >= MOST_BACK:
                raise Stays(f"{name!r} goes through more than {MOST_BACK} turns")
            return ast.IfExp(turn(back), end(name, back + 1), copy.deepcopy(first[name][1]))

        def end(name, back):
            value = ends[name]
            if isinstance(value, ast.Name) and value.id in ends:
                earlier = at[value.id] < at[name]
                return end(value.id, back) if earlier else begins(value.id, back)
            moved = ast.BinOp(ast.Name(loop.index, ast.Load()), ast.Sub(), ast.Constant(back * loop.step))
            return Put({loop.index: moved} if back else {}).visit(copy.deepcopy(value))

        def turn(back):
            """Whether there is a turn that is so many turns, and one, before."""
            low = node.iter.args[0] if len(node.iter.args) > 1 else ast.Constant(0)
            least = ast.BinOp(copy.deepcopy(low), ast.Add(), ast.Constant((back + 1) * loop.step))
            operator = ast.GtE() if loop.step > 0 else ast.LtE()
            return ast.Compare(ast.Name(loop.index, ast.Load()), [operator], [least])

        try:
            values = {name: begins(name, 0) for name in carried}
        except Stays:
            return False
        body = []
        for part in node.body:
            name = assigned(part)
            if name in ends:
                values[name] = Put(values).visit(copy.deepcopy(part.value))
            else:
                body.append(ast.fix_missing_locations(Put(values).visit(part)))
        node.body = body
        for name, (part, _) in first.items():
            part.targets = [each for each in part.targets if each.id != name]
        block[:] = [part for part in block if not isinstance(part, ast.Assign) or part.targets]
        return bool(body)

    def _first(self, name, statements):
        """(statement, value) of the float that a name has before a loop; None where that is not known."""
        for part in reversed(statements):
            plain = isinstance(part, ast.Assign) and all(isinstance(each, ast.Name) for each in part.targets)
            if name in stored_by(part):
                value = part.value if plain else None
                known = isinstance(value, ast.Constant) and type(value.value) is float
                return (part, value) if known else None
            if name in names_read(part):
                return None
        return None

    def _is_copy(self, value, node, place, path, carried):
        """Return whether a value is that of a name, a float, or an element which stays as it is."""
        if isinstance(value, ast.Name):
            return value.id in carried
        if not is_element(value):
            return isinstance(value, ast.Constant) and type(value.value) is float
        inner = (*path, self.loops[id(node)])
        access = self._access(value, inner)
        later = [each for each in self._elements(node.body[place:], inner) if isinstance(each[0].ctx, ast.Store)]
        if access is None or self.types.of(value) != "float64" or self._may_meet(value, later, inner):
            return False
        read = Group([], inner, 0, [Access(access.name, access.subscripts, False)])
        for each, there in self._elements(node.body, inner):
            if each.value.id == access.name and isinstance(each.ctx, ast.Store):
                found = self._access(each, there)
                if found is None or may_follow(read, Group([], there, -1, [found]), len(path)):
                    return False
        return True


def stored_by(node):
    """The names and the arrays that statements assign."""
    return names_stored(node) | {each.value.id for each in elements_in(node) if isinstance(each.ctx, ast.Store)}

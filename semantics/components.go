package semantics

// components is the condensation of a network: strongly connected components
// in topological order, sources first.
type components struct {
	of      []int32 // argument → component
	members []int32 // arguments, grouped by component
	start   []int32 // component k is members[start[k]:start[k+1]]
}

// condense finds the components with Tarjan's algorithm, without recursion:
// a chain of a million arguments must not overflow a stack. It walks edges
// from target to source, so a component comes out after all that influence it.
func (g *Network) condense() components {
	if g.order != unordered {
		return g.trivial()
	}
	const done = int32(1<<31 - 1)
	var (
		n     = int32(g.n)
		index = make([]int32, n) // 0: not seen; done: in a component
		low   = make([]int32, n)
		next  = make([]int32, n) // next in-edge to look at
		c     = components{of: make([]int32, n), members: make([]int32, 0, n), start: make([]int32, 1, n+1)}
		stack []int32
		path  []int32
		count = int32(1)
	)
	enter := func(v int32) {
		index[v], low[v], next[v] = count, count, g.off[2*v]
		count++
		stack = append(stack, v)
		path = append(path, v)
	}
	for root := range n {
		if index[root] != 0 {
			continue
		}
		enter(root)
	walk:
		for len(path) > 0 {
			v := path[len(path)-1]
			for end := g.off[2*v+2]; next[v] < end; {
				w := g.src[next[v]]
				next[v]++
				if index[w] == 0 {
					enter(w)
					continue walk
				}
				low[v] = min(low[v], index[w])
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				u := path[len(path)-1]
				low[u] = min(low[u], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				index[w], low[w] = done, done
				c.of[w] = int32(len(c.start) - 1)
				c.members = append(c.members, w)
				if w == v {
					break
				}
			}
			c.start = append(c.start, int32(len(c.members)))
		}
	}
	return c
}

// trivial is the condensation of a network whose indices are in topological order.
func (g *Network) trivial() components {
	c := components{of: make([]int32, g.n), members: make([]int32, g.n), start: make([]int32, g.n+1)}
	for k := range int32(g.n) {
		v := k
		if g.order == descending {
			v = int32(g.n) - 1 - k
		}
		c.of[v], c.members[k], c.start[k+1] = k, v, k+1
	}
	return c
}

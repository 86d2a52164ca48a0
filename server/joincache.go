package server

import "strings"

// joinCache is a text joined of others. It allocates only if the text differs from that
// of the previous request, which is rare on one connection.
type joinCache string

// maxJoinCacheBytes is the length of the longest text that is kept for later requests.
const maxJoinCacheBytes = 1 << 10

// set makes the text the concatenation of elems.
func (c *joinCache) set(elems ...string) {
	rest, same := string(*c), true
	for _, e := range elems {
		if rest, same = strings.CutPrefix(rest, e); !same {
			break
		}
	}
	if !same || rest != "" {
		*c = joinCache(strings.Join(elems, ""))
	}
}

// trim forgets a long text, so that an idle exchange does not keep its memory.
func (c *joinCache) trim() {
	if len(*c) > maxJoinCacheBytes {
		*c = ""
	}
}

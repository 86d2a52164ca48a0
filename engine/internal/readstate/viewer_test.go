package readstate

import "testing"

// TestViewerShards takes as many viewers as there are shards of pins. All have different
// shards.
func TestViewerShards(t *testing.T) {
	seen := make(map[uint64]bool)
	for range pinShards {
		v := TakeViewer()
		defer v.Put()
		seen[v.Shard] = true
	}
	if len(seen) != pinShards {
		t.Errorf("%d viewers have %d shards", pinShards, len(seen))
	}
}

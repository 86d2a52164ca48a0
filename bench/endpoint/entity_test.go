package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestEntities checks the entities: valid JSON, unique keys, 1 KiB in ten properties.
func TestEntities(t *testing.T) {
	d := newDataset(3000, 1)
	fixed := map[string]int{"Rating": 4, "Active": 1, "Price": 8, "Total": 8, "Made": 8, "Id": 16}
	for _, table := range []string{tableLoaded, tableInserted} {
		keys := map[string]bool{}
		for i := range d.n {
			text := d.appendEntity(nil, table, i)
			var members map[string]any
			if err := json.Unmarshal(text, &members); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			key := members["PartitionKey"].(string) + "/" + members["RowKey"].(string)
			if keys[key] {
				t.Fatalf("key %s is used twice in %s", key, table)
			}
			keys[key] = true
			if !strings.Contains(d.entityPath(table, i), members["PartitionKey"].(string)+"',RowKey='"+members["RowKey"].(string)) {
				t.Fatalf("entity %d is not at %s: %s", i, d.entityPath(table, i), text)
			}
			delete(members, "PartitionKey")
			delete(members, "RowKey")
			n, size := 0, 0
			for name, value := range members {
				if strings.HasSuffix(name, "@odata.type") {
					continue
				}
				n++
				if width, ok := fixed[name]; ok {
					size += len(name) + width
				} else {
					size += len(name) + len(value.(string))
				}
			}
			if n != 10 || size != 1024 {
				t.Fatalf("entity %d has %d properties of %d bytes: %s", i, n, size, text)
			}
		}
	}
}

// TestBatches checks that each batch has 100 entities of one partition.
func TestBatches(t *testing.T) {
	d := newDataset(2000, 1)
	target := &target{host: "h:1", base: "/a"}
	for b := range d.n / perBatch {
		text := d.appendBatch(nil, target, b)
		partition := []byte(`{"PartitionKey":"` + strings.TrimPrefix(strings.SplitN(d.entityPath(tableLoaded, b*perBatch), "'", 3)[1], "'") + `"`)
		if n := bytes.Count(text, partition); n != perBatch {
			t.Errorf("batch %d has %d entities of its partition %s", b, n, partition)
		}
	}
}

func TestQuantile(t *testing.T) {
	var sorted []time.Duration
	for i := range 100 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 50}, {0.99, 99}, {1, 100}} {
		if got := quantile(sorted, c.q); got != c.want {
			t.Errorf("quantile(%g): got %d, want %d", c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing: got %d", got)
	}
}

func TestParseStat(t *testing.T) {
	pid, got, ok := parseStat("12 (a ) b) S 7 12 12 0 -1 4194560 100 0 0 0 150 25 20 5 20 0 9 0 1 2 3\n")
	if want := (stat{parent: 7, time: 2 * time.Second}); !ok || got != want || pid != 12 {
		t.Errorf("got %d, %+v %t, want %+v", pid, got, ok, want)
	}
	if _, _, ok := parseStat("12 (a) S 1"); ok {
		t.Error("a line cut short was accepted")
	}
}

// TestTreeTime adds the times of processes and of their descendants, each once.
func TestTreeTime(t *testing.T) {
	all := map[int]stat{1: {0, 1}, 2: {1, 10}, 3: {2, 100}, 4: {3, 1000}, 5: {1, 10_000}}
	for _, c := range []struct {
		pids []int
		want string
	}{
		{[]int{2}, "[1.11µs] true"}, {[]int{2, 4, 5}, "[110ns 1µs 10µs] true"}, {[]int{5, 6}, "[] false"}, {nil, "[] false"},
	} {
		times, ok := treeTime(all, c.pids)
		if got := fmt.Sprint(times, ok); got != c.want {
			t.Errorf("%v: got %s, want %s", c.pids, got, c.want)
		}
	}
}

func TestStatusField(t *testing.T) {
	const text = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t      12 kB\n"
	for name, want := range map[string]int64{"VmHWM": 2 << 20, "VmRSS": 12 << 10, "VmSwap": 0, "Name": 0} {
		if got := statusField(text, name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

package cgroup_test

import (
	"testing"
	"testing/fstest"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/cgroup"
)

func TestMemoryLimit(t *testing.T) {
	const (
		two = "sys/fs/cgroup/"
		one = "sys/fs/cgroup/memory/"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no control groups", nil, 0},
		{"container with version 2", map[string]string{
			"proc/self/cgroup": "0::/\n", two + "memory.max": "268435456\n",
		}, 256 << 20},
		{"no limit in version 2", map[string]string{
			"proc/self/cgroup": "0::/\n", two + "memory.max": "max\n",
		}, 0},
		{"service of systemd", map[string]string{
			"proc/self/cgroup": "0::/system.slice/tablerock.service\n",
			two + "system.slice/tablerock.service/memory.max": "1073741824\n",
			two + "system.slice/memory.max":                   "max\n",
		}, 1 << 30},
		{"smaller limit of a group around it", map[string]string{
			"proc/self/cgroup":     "0::/a/b\n",
			two + "a/b/memory.max": "max\n",
			two + "a/memory.max":   "536870912\n",
			two + "memory.max":     "1073741824\n",
		}, 512 << 20},
		{"container with version 1 and the path of the host", map[string]string{
			"proc/self/cgroup":            "5:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n0::/\n",
			one + "memory.limit_in_bytes": "134217728\n",
		}, 128 << 20},
		{"group with version 1", map[string]string{
			"proc/self/cgroup":                "4:hugetlb,memory:/x\n",
			one + "x/memory.limit_in_bytes":   "134217728\n",
			one + "memory.limit_in_bytes":     "9223372036854771712\n",
			two + "x/memory.max":              "1\n", // no file of version 1
			two + "cpu/memory.limit_in_bytes": "2\n",
		}, 128 << 20},
		{"no limit in version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", one + "memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		{"path that leaves the namespace", map[string]string{
			"proc/self/cgroup": "0::/../..\n", two + "memory.max": "4096\n", "memory.max": "1\n", "sys/memory.max": "1\n",
		}, 4096},
		{"lines and numbers of another form", map[string]string{
			"proc/self/cgroup": "\n0\n0:\n0:x\n0::/\n", two + "memory.max": "-5\n",
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := cgroup.MemoryLimit(root); got != c.want {
				t.Errorf("the limit is %d, want %d", got, c.want)
			}
		})
	}
}

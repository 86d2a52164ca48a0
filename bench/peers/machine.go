package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// commit returns the commit of the program, marked if it has changes. A program that
// "go run" builds does not know it, so the working tree tells.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		revision, dirty := "", ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		const short = 12
		if len(revision) > short {
			return revision[:short] + dirty
		}
	}
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// machine describes the processors, the memory and the system.
func machine() string {
	return fmt.Sprintf("%d processors (%s), %s of memory, %s %s, %s", runtime.NumCPU(),
		procField("/proc/cpuinfo", "model name", runtime.GOARCH), procField("/proc/meminfo", "MemTotal", "unknown size"),
		runtime.GOOS, kernel(), runtime.Version())
}

// procField returns a field of a file of lines "name: value".
func procField(file, name, missing string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return missing
	}
	for line := range strings.Lines(string(data)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return missing
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOARCH
	}
	return strings.TrimSpace(string(release)) + "/" + runtime.GOARCH
}

package full

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// The kinds of file systems.
const (
	ext4  = "ext4"
	tmpfs = "tmpfs"
)

// The ways to fill a volume.
const (
	fillServe  = "serve"  // clients of serve write until they are refused
	fillImport = "import" // tablerock import runs until it is refused
	fillFile   = "file"   // another file takes what a half-full database leaves
	fillBare   = "bare"   // the same, and the database has no reserve when it is opened
)

// The ways to make room again.
const (
	reliefDelete = "delete" // half of the rows
	reliefDrop   = "drop"   // one of two tables
	reliefTools  = "tools"  // commands, while no server runs
)

// Case is one scenario on one volume.
type Case struct {
	FileSystem string
	Bytes      int64  // of the volume
	Segment    string // value of --segment-size
	Fill       string
	Signal     syscall.Signal // ends the server on the full volume
	Relief     string
	// Short is set for the cases of a short campaign.
	Short bool
}

// Name returns the name that selects the case.
func (c Case) Name() string {
	signal := "term"
	if c.Signal == syscall.SIGKILL {
		signal = "kill"
	}
	return fmt.Sprintf("%s-%d/%s/%s/%s/%s", c.FileSystem, c.Bytes>>20, c.Segment, c.Fill, signal, c.Relief)
}

// shortCases has each way to fill a volume, each signal and each way to make room.
var shortCases = []string{
	"ext4-24/16MiB/serve/term/delete", "tmpfs-40/256KiB/import/kill/delete", "tmpfs-40/256KiB/file/kill/drop",
	"ext4-24/16MiB/file/term/tools", "ext4-24/64KiB/bare/term/drop",
}

// Cases returns all cases.
func Cases() (cases []Case) {
	volumes := []Case{
		{FileSystem: ext4, Bytes: 24 << 20},
		{FileSystem: tmpfs, Bytes: 40 << 20},
		{FileSystem: ext4, Bytes: 48 << 20},
		{FileSystem: ext4, Bytes: 110 << 20},
	}
	// Each volume has the default segment size and a small one, each way to fill it, and
	// each signal. Which signal is sent before which relief alternates.
	small := []string{"64KiB", "256KiB"}
	for i, v := range volumes {
		for j, segment := range []string{"16MiB", small[i%2]} {
			for k, fill := range []string{fillServe, fillImport, fillFile} {
				for l, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
					v.Segment, v.Fill, v.Signal = segment, fill, signal
					v.Relief = []string{reliefDelete, reliefDrop}[(i+j+k+l)%2]
					cases = append(cases, v)
				}
				v.Signal, v.Relief = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[(i+j+k)%2], reliefTools
				cases = append(cases, v)
			}
			for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				v.Fill, v.Signal, v.Relief = fillBare, signal, reliefDrop
				cases = append(cases, v)
			}
		}
	}
	for i := range cases {
		cases[i].Short = slices.Contains(shortCases, cases[i].Name())
	}
	return cases
}

// Figures are what a case measured.
type Figures struct {
	Rows    int     // acknowledged on the full volume
	Reserve int64   // bytes of the reserve on the empty volume
	Usage   float64 // share of the volume in use when no write was accepted any more
	// Back is the time from the acknowledgement of the last deletion until a write was
	// accepted.
	Back time.Duration
	// Again is the share of the deleted bytes that could be written again.
	Again   float64
	Elapsed time.Duration
}

// Header is the header of the lines of Figures.
var Header = fmt.Sprintf("%-34s %8s %8s %6s %8s %6s %7s", "volume/segment/fill/signal/relief", "rows", "reserve", "used", "back", "again", "time")

// Line returns a line with the figures of a case. A figure that was not measured is "-".
func (f *Figures) Line(c Case) string {
	measured := func(ok bool, format string, x float64) string {
		if !ok {
			return "-"
		}
		return fmt.Sprintf(format, x)
	}
	return fmt.Sprintf("%-34s %8d %8s %6s %8s %6s %6.1fs", c.Name(), f.Rows, fmt.Sprintf("%.1fMB", float64(f.Reserve)/(1<<20)),
		measured(f.Usage > 0, "%.1f%%", 100*f.Usage), measured(f.Back > 0, "%.3fs", f.Back.Seconds()), measured(f.Back > 0, "%.0f%%", 100*f.Again),
		f.Elapsed.Seconds())
}

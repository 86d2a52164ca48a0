package report

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// picture is a plot with its file and its caption.
type picture struct {
	name, caption string
	draw          func(f *results.File, m medians) (*plot.Plot, vg.Length, error)
}

// errNoResults leaves a picture out: the file has no results for it.
var errNoResults = errors.New("no results")

var pictures = []picture{
	{"ratios.svg", "CPU time of the best peer in Go divided by Tablerock's: above 1, Tablerock needs less", drawRatios},
	{"latencies.svg", "Latency: median, 99th and 99.9th percentile", drawLatencies},
	{"growth.svg", "CPU time of an operation by the number of entities", drawGrowth},
	{"write-amplification.svg", "Bytes written to files for each byte of entities", drawWriteAmp},
	{"caches.svg", "CPU time of a get by the size of the block cache", drawCaches},
}

const width = 20 * vg.Centimeter

// colors of the engines, from the palette of Okabe and Ito, which color-blind readers
// can tell apart.
var colors = map[string]color.RGBA{
	ours:        {0xd5, 0x5e, 0x00, 0xff},
	"pebble":    {0x00, 0x72, 0xb2, 0xff},
	"badger":    {0xe6, 0x9f, 0x00, 0xff},
	"goleveldb": {0x00, 0x9e, 0x73, 0xff},
	"bbolt":     {0xcc, 0x79, 0xa7, 0xff},
	"rocksdb":   {0x80, 0x80, 0x80, 0xff},
	"lmdb":      {0x20, 0x20, 0x20, 0xff},
}

var (
	better = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	worse  = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
)

// newPlot returns an empty plot with the style of the report.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	const typeface = "Sans"
	p.Title.TextStyle.Font.Variant, p.Legend.TextStyle.Font.Variant = typeface, typeface
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(8)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Variant, axis.Tick.Label.Font.Variant = typeface, typeface
		axis.Label.TextStyle.Font.Size = vg.Points(10)
		axis.Tick.Label.Font.Size = vg.Points(9)
	}
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(3)
	return p
}

// drawAll writes the pictures that the file has results for to a directory and returns them.
func drawAll(f *results.File, dir string) ([]picture, error) {
	m := mediansOf(f)
	var drawn []picture
	for _, pic := range pictures {
		p, height, err := pic.draw(f, m)
		if errors.Is(err, errNoResults) {
			continue
		}
		if err == nil {
			err = save(p, height, filepath.Join(dir, pic.name))
		}
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", pic.name, err)
		}
		drawn = append(drawn, pic)
	}
	return drawn, nil
}

// save writes a plot to a file, with a margin.
func save(p *plot.Plot, height vg.Length, name string) (err error) {
	const margin = 10
	c := vgsvg.New(width, height)
	area := draw.New(c)
	area.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	p.Draw(draw.Crop(area, margin, -3*margin, margin, -margin))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	return errors.Join(err, f.Close())
}

// short returns the name of a workload for a picture.
func short(workload string) string {
	return strings.NewReplacer("key=present/", "", "order=", "", "range=", "", "key=", "", "mix=", "", "type=", "", "until=merged", "merged").Replace(workload)
}

// drawRatios draws one bar for each workload: on a logarithmic scale from 1.
func drawRatios(f *results.File, m medians) (*plot.Plot, vg.Length, error) {
	size := mainSize(f)
	var names []string
	var up, down plotter.Values
	list := order(f, size, grid)
	slices.Reverse(list) // the axis begins at the bottom
	for _, w := range list {
		us, ok := m.of(w, ours, size, grid)
		_, cheap, has := m.best(w, goPeers, size, grid)
		// Single inserts and batches leave little to merge.
		if small := strings.HasPrefix(w, "insert") || strings.HasPrefix(w, "batch"); !ok || !has || small && strings.HasSuffix(w, merged) {
			continue
		}
		ratio := cheap.CPUMicros / us.CPUMicros
		names = append(names, short(w))
		up, down = append(up, max(1, ratio)), append(down, min(1, ratio))
	}
	if len(names) == 0 {
		return nil, 0, errNoResults
	}
	p := newPlot("CPU time: best peer in Go / Tablerock", "ratio; above 1, Tablerock needs less", "")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ratioTicks{}
	p.NominalY(names...)
	for _, side := range []struct {
		values plotter.Values
		fill   color.Color
	}{{up, better}, {down, worse}} {
		p.Add(&ratioBars{side.values, side.fill})
	}
	line := plotter.NewGrid()
	line.Horizontal.Width = 0
	p.Add(line)
	p.X.Min, p.X.Max = min(0.5, slices.Min(down)/2.5), max(2, slices.Max(up)*1.6) // with space for the values
	p.Y.Min, p.Y.Max = -0.7, float64(len(names))-0.3
	return p, vg.Length(len(names))*vg.Points(15) + 3*vg.Centimeter, nil
}

// ratioBars are horizontal bars from 1, with their values.
type ratioBars struct {
	values plotter.Values
	fill   color.Color
}

// Plot implements plot.Plotter.
func (b *ratioBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	const half = 4.5
	style := p.X.Tick.Label
	style.YAlign = draw.YCenter
	for i, v := range b.values {
		if v == 1 {
			continue
		}
		from, to, at := x(1), x(v), y(float64(i))
		c.FillPolygon(b.fill, []vg.Point{
			{X: from, Y: at - half}, {X: to, Y: at - half}, {X: to, Y: at + half}, {X: from, Y: at + half},
		})
		style.XAlign = draw.XLeft
		gap := vg.Points(3)
		if v < 1 {
			style.XAlign, gap = draw.XRight, -gap
		}
		c.FillText(style, vg.Point{X: to + gap, Y: at}, fmt.Sprintf("%.2f", v))
	}
}

// DataRange implements plot.DataRanger.
func (b *ratioBars) DataRange() (xmin, xmax, ymin, ymax float64) {
	return slices.Min(b.values), slices.Max(b.values), 0, float64(len(b.values) - 1)
}

// ratioTicks are ticks of a logarithmic axis of ratios.
type ratioTicks struct{}

// Ticks implements plot.Ticker.
func (ratioTicks) Ticks(lowest, greatest float64) []plot.Tick {
	var ticks []plot.Tick
	for _, v := range []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50} {
		if v >= lowest && v <= greatest {
			ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
		}
	}
	return ticks
}

// enginesOf returns the engines with results for any of the workloads.
func (m medians) enginesOf(workloads []string, size int, shape string) []string {
	var out []string
	for _, e := range allEngines {
		for _, w := range workloads {
			if _, ok := m.of(w, e, size, shape); ok {
				out = append(out, e)
				break
			}
		}
	}
	return out
}

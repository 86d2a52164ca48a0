package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// drawLatencies draws the percentiles of some workloads: a line for each engine from the
// median to the 99.9th percentile, with a mark at the 99th.
func drawLatencies(f *results.File, m medians) (*plot.Plot, vg.Length, error) {
	size := mainSize(f)
	workloads := present(m, size, []string{
		"insert/writers=1", "insert/writers=64", "batch/writers=1", "batch/writers=16", "get/key=present/readers=1",
		"get/key=present/readers=16", "get/key=missing/readers=1", "get/key=present/cache=32MiB/readers=1",
		"get/key=present/from=disk/readers=1", "ycsb/mix=A", "ycsb/mix=E",
	})
	if len(workloads) == 0 {
		return nil, 0, errNoResults
	}
	slices.Reverse(workloads)
	p := newPlot("Latency: median, 99th (dot) and 99.9th percentile", "microseconds", "")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = short(w)
	}
	p.NominalY(names...)
	engines := m.enginesOf(workloads, size, grid)
	for e, engine := range engines {
		for i, w := range workloads {
			r, ok := m.of(w, engine, size, grid)
			if !ok || r.P50 <= 0 {
				continue
			}
			y := float64(i) + (0.5-(float64(e)+0.5)/float64(len(engines)))*0.8
			line, dot, err := span(r, y, engine)
			if err != nil {
				return nil, 0, err
			}
			p.Add(line, dot)
			if i == len(workloads)-1 {
				p.Legend.Add(engine, line, dot)
			}
		}
	}
	p.Add(verticals())
	p.Legend.Top = true
	p.Y.Min, p.Y.Max = -0.6, float64(len(workloads))-0.4
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(p.X.Min))), math.Pow(10, math.Ceil(math.Log10(p.X.Max)+0.8))
	return p, vg.Length(len(workloads)*len(engines))*vg.Points(7) + 3*vg.Centimeter, nil
}

// span returns the line of one result at a height, and the dot at its 99th percentile.
func span(r results.Result, y float64, engine string) (*plotter.Line, *plotter.Scatter, error) {
	line, err := plotter.NewLine(plotter.XYs{{X: r.P50, Y: y}, {X: max(r.P50, r.P999), Y: y}})
	if err != nil {
		return nil, nil, err
	}
	line.Color, line.Width = colors[engine], vg.Points(2.5)
	dot, err := plotter.NewScatter(plotter.XYs{{X: r.P99, Y: y}})
	if err != nil {
		return nil, nil, err
	}
	dot.GlyphStyle = draw.GlyphStyle{Color: colors[engine], Radius: vg.Points(3.5), Shape: draw.CircleGlyph{}}
	return line, dot, nil
}

// present returns the workloads of a list that have results of Tablerock.
func present(m medians, size int, workloads []string) []string {
	var out []string
	for _, w := range workloads {
		if _, ok := m.of(w, ours, size, grid); ok {
			out = append(out, w)
		}
	}
	return out
}

func verticals() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Width = 0
	return g
}

// decades are ticks at the powers of ten.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lowest, greatest float64) []plot.Tick {
	var ticks []plot.Tick
	const first, last = -3, 9
	for e := first; e <= last; e++ {
		if v := math.Pow(10, float64(e)); v >= lowest*0.999 && v <= greatest*1.001 {
			ticks = append(ticks, plot.Tick{Value: v, Label: number0(v)})
		}
	}
	return ticks
}

// number0 formats a power of ten.
func number0(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%g M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%g k", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}

// point is a figure of a curve.
type point struct{ x, y float64 }

// addCurve adds the curve of an engine to a plot. A dashed curve has no entry in the
// legend.
func addCurve(p *plot.Plot, engine string, dashed bool, points []point) error {
	xys := make(plotter.XYs, len(points))
	for i, pt := range points {
		xys[i] = plotter.XY{X: pt.x, Y: pt.y}
	}
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.Color, line.Width = colors[engine], vg.Points(2)
	dots.GlyphStyle = draw.GlyphStyle{Color: colors[engine], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(line, dots)
	if dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		return nil
	}
	p.Legend.Add(engine, line, dots)
	return nil
}

// drawGrowth draws the CPU time of a get and of an insert by the number of entities.
func drawGrowth(f *results.File, m medians) (*plot.Plot, vg.Length, error) {
	var sizes []int
	for _, r := range f.Results {
		if r.Workload == "get/key=present/readers=1" && r.Shape == grid && !slices.Contains(sizes, r.Size) {
			sizes = append(sizes, r.Size)
		}
	}
	if len(sizes) < 2 {
		return nil, 0, errNoResults
	}
	slices.Sort(sizes)
	p := newPlot("CPU time by size: hot get (line), random load (dashed)", "entities", "microseconds of CPU")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ratioTicks{}
	for _, engine := range allEngines {
		for _, w := range []string{"get/key=present/readers=1", "load/order=random"} {
			var points []point
			for _, size := range sizes {
				if r, ok := m.of(w, engine, size, grid); ok {
					points = append(points, point{float64(size), r.CPUMicros})
				}
			}
			if len(points) < 2 {
				continue
			}
			if err := addCurve(p, engine, w == "load/order=random", points); err != nil {
				return nil, 0, err
			}
		}
	}
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*4
	return p, 11 * vg.Centimeter, nil
}

// drawCaches draws the CPU time of a get by the size of the cache.
func drawCaches(f *results.File, m medians) (*plot.Plot, vg.Length, error) {
	size := mainSize(f)
	sizes := []struct {
		mib      float64
		workload string
	}{
		{8, "get/key=present/cache=8MiB/readers=1"},
		{32, "get/key=present/cache=32MiB/readers=1"},
		{128, "get/key=present/cache=128MiB/readers=1"},
		{512, "get/key=present/readers=1"},
	}
	p := newPlot("CPU time of a get by the size of the block cache", "MiB; bbolt and LMDB have none", "microseconds of CPU")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = ratioTicks{}
	var ticks plot.ConstantTicks
	for _, s := range sizes {
		ticks = append(ticks, plot.Tick{Value: s.mib, Label: number0(s.mib)})
	}
	p.X.Tick.Marker = ticks
	drawn := 0
	for _, engine := range allEngines {
		var points []point
		for _, s := range sizes {
			if r, ok := m.of(s.workload, engine, size, grid); ok {
				points = append(points, point{s.mib, r.CPUMicros})
			}
		}
		if len(points) < 2 {
			continue
		}
		drawn++
		if err := addCurve(p, engine, false, points); err != nil {
			return nil, 0, err
		}
	}
	if drawn == 0 {
		return nil, 0, errNoResults
	}
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.X.Min, p.X.Max = 7, 1024
	p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*1.5
	return p, 11 * vg.Centimeter, nil
}

// drawWriteAmp draws bars for loads and overwrites, until everything is merged.
func drawWriteAmp(f *results.File, m medians) (*plot.Plot, vg.Length, error) {
	size := mainSize(f)
	workloads := present(m, size, []string{"load/order=sorted" + merged, "load/order=random" + merged, "overwrite/passes=3" + merged})
	if len(workloads) == 0 {
		return nil, 0, errNoResults
	}
	engines := m.enginesOf(workloads, size, grid)
	p := newPlot("Write amplification until everything is merged", "", "bytes written / bytes of entities")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ratioTicks{}
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = short(w)
	}
	p.NominalX(names...)
	const bar = 19
	highest := 1.0
	for e, engine := range engines {
		values := make([]float64, len(workloads))
		for i, w := range workloads {
			if r, ok := m.of(w, engine, size, grid); ok {
				values[i] = r.WriteAmp
				highest = max(highest, r.WriteAmp)
			}
		}
		b := &columns{values, vg.Length(float64(e)-float64(len(engines)-1)/2) * bar, bar, engine}
		p.Add(b)
		p.Legend.Add(engine, b)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.X.Min, p.X.Max = -0.6, float64(len(workloads))-0.4
	p.Y.Min, p.Y.Max = 0.5, highest*4
	return p, 11 * vg.Centimeter, nil
}

// columns are the bars of one engine, one for each workload, with their values.
type columns struct {
	values []float64
	offset vg.Length
	width  vg.Length
	engine string
}

// Plot implements plot.Plotter.
func (b *columns) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := p.X.Tick.Label
	style.Font.Size = vg.Points(8)
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	half := b.width / 2 * 0.85
	for i, v := range b.values {
		if v <= 0 {
			continue
		}
		at, from, to := x(float64(i))+b.offset, y(p.Y.Min), y(v)
		c.FillPolygon(colors[b.engine], []vg.Point{
			{X: at - half, Y: from}, {X: at + half, Y: from}, {X: at + half, Y: to}, {X: at - half, Y: to},
		})
		c.FillText(style, vg.Point{X: at, Y: to + vg.Points(2)}, fmt.Sprintf("%.1f", v))
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b *columns) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(colors[b.engine], []vg.Point{
		{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y},
	})
}

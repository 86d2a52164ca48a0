package history

import (
	"cmp"
	"slices"
	"time"
)

// Excuse reports whether a read of a server may be old, because the server had a connection
// to a deposed leader at some time from call to end.
type Excuse func(server int, call, end int64) bool

// Report is the result of a check.
type Report struct {
	Acked, Refused int
	Lost           int // acknowledged batches of which a row is missing at the end
	Unknown        int // batches of unknown outcome
	There, Half    int // of these, that are there in whole or in part
	Ops            int
	StaleReads     int           // that were excused
	StaleTime      time.Duration // the longest time by which such a read was late
	LongestGap     time.Duration // the longest time without an acknowledged batch
	GapBegin       int64
	Violations     []string
}

type checker struct {
	report Report
	excuse Excuse
}

// Check checks a log. final are the rows of all partitions at the end, read when no
// operation was under way. excuse may be nil.
func (l *Log) Check(final []Page, excuse Excuse) *Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	if excuse == nil {
		excuse = func(int, int64, int64) bool { return false }
	}
	c := &checker{excuse: excuse}
	c.checkBatches(l.batches, final)
	c.checkPages(l.batches, l.pages)
	c.checkKeys(l.keys)
	c.gap(l.batches)
	return &c.report
}

// rowKey is a row of a partition.
type rowKey struct {
	partition string
	number    int
}

// checkBatches compares the batches with the rows at the end.
func (c *checker) checkBatches(batches []Batch, final []Page) {
	rows := map[rowKey]Row{}
	for _, p := range final {
		for _, r := range p.Rows {
			key := rowKey{p.Partition, r.Number}
			if _, ok := rows[key]; ok {
				c.violate("row %d of partition %s is there twice", r.Number, p.Partition)
			}
			rows[key] = r
		}
	}
	expected := 0
	for i := range batches {
		b := &batches[i]
		there := c.rowsOf(b, rows)
		expected += there
		switch {
		case b.Answer == OK:
			c.report.Acked++
			if there < b.Rows {
				c.report.Lost++
				c.violate("batch %d was acknowledged at %.6f s by server %d, and %d of its %d rows are lost: partition %s from row %d",
					b.ID, seconds(b.Return), b.Server, b.Rows-there, b.Rows, b.Partition, b.First)
			}
		case b.Answer == Unknown:
			c.report.Unknown++
			if there == b.Rows {
				c.report.There++
			}
		default:
			c.report.Refused++
			if there > 0 {
				c.violate("batch %d was refused (%v) at %.6f s by server %d, and %d of its %d rows are there", b.ID, b.Answer, seconds(b.Return), b.Server, there, b.Rows)
			}
		}
		if there > 0 && there < b.Rows {
			c.report.Half++
			if b.Answer != OK {
				c.violate("half of batch %d is there: %d of its %d rows, partition %s from row %d", b.ID, there, b.Rows, b.Partition, b.First)
			}
		}
	}
	if expected != len(rows) {
		c.violate("%d rows are there, and the batches have %d", len(rows), expected)
	}
}

// rowsOf returns the number of rows of a batch that are there.
func (c *checker) rowsOf(b *Batch, rows map[rowKey]Row) (there int) {
	for i := range b.Rows {
		r, ok := rows[rowKey{b.Partition, b.First + i}]
		if !ok {
			continue
		}
		there++
		if r.Batch != b.ID {
			c.violate("row %d of partition %s was written by batch %d, and has the content of batch %d", b.First+i, b.Partition, b.ID, r.Batch)
		}
		if b.Answer == OK && r.ETag != b.ETags[i] {
			c.violate("row %d of batch %d was acknowledged with the ETag %s, and has %s", i, b.ID, b.ETags[i], r.ETag)
		}
	}
	return there
}

// checkPages checks that a page has each row that was acknowledged, or that another page
// had, before the page was asked for. Rows are never changed or deleted, so this is what
// linearizability means for them.
func (c *checker) checkPages(batches []Batch, pages []Page) {
	since := map[rowKey]int64{} // the time from which all pages must have a row
	end := map[string]int{}     // the number after the last row of a partition
	know := func(partition string, number int, from int64) {
		key := rowKey{partition, number}
		end[partition] = max(end[partition], number+1)
		if t, ok := since[key]; !ok || from < t {
			since[key] = from
		}
	}
	for _, b := range batches {
		for i := range b.Rows {
			if b.Answer == OK {
				know(b.Partition, b.First+i, b.Return)
			}
		}
	}
	for _, p := range pages {
		for _, r := range p.Rows {
			know(p.Partition, r.Number, p.Return)
		}
	}
	for _, p := range pages {
		p.To = min(p.To, end[p.Partition])
		c.checkPage(p, since)
	}
}

func (c *checker) checkPage(p Page, since map[rowKey]int64) {
	if !slices.IsSortedFunc(p.Rows, func(a, b Row) int { return cmp.Compare(a.Number, b.Number) }) {
		c.violate("a page of partition %s has its rows in another order", p.Partition)
	}
	there := map[int]bool{}
	for _, r := range p.Rows {
		if there[r.Number] {
			c.violate("a page of partition %s has row %d twice", p.Partition, r.Number)
		}
		there[r.Number] = true
	}
	for number := p.From; number < p.To; number++ {
		t, ok := since[rowKey{p.Partition, number}]
		if !ok || there[number] || t >= p.Call {
			continue
		}
		age := time.Duration(p.Return - t)
		if c.excuse(p.Server, p.Call, p.Return) {
			c.report.StaleReads++
			c.report.StaleTime = max(c.report.StaleTime, age)
			continue
		}
		c.violate("a page is stale by %v: server %d, %.6f to %.6f s, partition %s, row %d to before row %d: row %d is missing",
			age, p.Server, seconds(p.Call), seconds(p.Return), p.Partition, p.From, p.To, number)
		return
	}
}

// gap finds the longest time without an acknowledged batch, from the first one to the last.
func (c *checker) gap(batches []Batch) {
	var acks []int64
	for _, b := range batches {
		if b.Answer == OK {
			acks = append(acks, b.Return)
		}
	}
	slices.Sort(acks)
	for i := 1; i < len(acks); i++ {
		if gap := time.Duration(acks[i] - acks[i-1]); gap > c.report.LongestGap {
			c.report.LongestGap, c.report.GapBegin = gap, acks[i-1]
		}
	}
}

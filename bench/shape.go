package bench

import (
	"fmt"
	"strconv"
)

// Shape is the distribution of entities over partitions.
type Shape struct {
	Partitions int
	Rows       int // in each partition
}

// Names of shapes for ShapeOf.
const (
	Grid    = "grid"    // partitions of 1,000 entities
	Singles = "singles" // one entity in each partition
	Whole   = "whole"   // one partition
)

// ShapeNames lists the shapes in the order of reports.
func ShapeNames() []string { return []string{Grid, Singles, Whole} }

// gridRows is the number of entities of a partition in a grid.
const gridRows = 1000

// ShapeOf returns the named shape for about n entities. A grid of fewer than 1,000
// entities has one partition.
func ShapeOf(name string, n int) (Shape, error) {
	if n < 1 {
		return Shape{}, fmt.Errorf("shape %s of %d entities: there must be at least one", name, n)
	}
	switch name {
	case Grid:
		rows := min(n, gridRows)
		return Shape{Partitions: n / rows, Rows: rows}, nil
	case Singles:
		return Shape{Partitions: n, Rows: 1}, nil
	case Whole:
		return Shape{Partitions: 1, Rows: n}, nil
	}
	return Shape{}, fmt.Errorf("shape %q: not one of %v", name, ShapeNames())
}

// Len returns the number of entities.
func (s Shape) Len() int { return s.Partitions * s.Rows }

// String returns a text such as 1000x1000: partitions, then rows of each.
func (s Shape) String() string { return strconv.Itoa(s.Partitions) + "x" + strconv.Itoa(s.Rows) }

//go:build !unix

package serve

import "math"

// openFiles returns the limit of open files of this process: there is none.
func openFiles() int { return math.MaxInt }

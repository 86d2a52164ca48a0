package faults

import "time"

// systemNow is the default of Options.Now.
func systemNow() time.Time { return time.Now() }

package backup

import "time"

// systemNow is the default of Source.Clock.
func systemNow() time.Time { return time.Now() }

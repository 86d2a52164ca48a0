package documents

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

// maxRetentionDays is the longest retention.
const maxRetentionDays = 365

// analyticsVersion is the only valid text of Version elements.
const analyticsVersion = "1.0"

// Properties are the service properties of an account. The zero value is the default.
type Properties struct {
	Logging       Logging
	HourMetrics   Metrics
	MinuteMetrics Metrics
	Cors          []cors.Rule
}

// Logging selects the requests to log.
type Logging struct {
	Read, Write, Delete bool
	RetentionDays       int // 0 if no retention is set
}

// Metrics enables the counting of requests.
type Metrics struct {
	Enabled       bool
	IncludeAPIs   bool // only if Enabled
	RetentionDays int  // 0 if no retention is set
}

// MergeProperties returns old with the sections of a client's document in place of its own.
// It refuses a document without sections. The error is an *Error.
func MergeProperties(old Properties, doc []byte) (Properties, error) {
	p, sections := old, 0
	section := func(name string, read func(*reader) error) field {
		return field{name: name, optional: true, read: func(r *reader) error {
			sections++
			return read(r)
		}}
	}
	err := readDocument(trimByteOrderMark(doc), "StorageServiceProperties", func(r *reader) error {
		return r.fields(
			section("Logging", func(r *reader) error { return r.logging(&p.Logging) }),
			section("HourMetrics", func(r *reader) error { return r.metrics(&p.HourMetrics) }),
			section("MinuteMetrics", func(r *reader) error { return r.metrics(&p.MinuteMetrics) }),
			section("Cors", func(r *reader) error {
				p.Cors = nil
				return r.list("CorsRule", cors.MaxRules, func(r *reader) error {
					rule, err := r.corsRule()
					p.Cors = append(p.Cors, rule)
					return err
				})
			}),
		)
	})
	if err == nil && sections == 0 {
		err = refuse("no section")
	}
	if err != nil {
		return Properties{}, err
	}
	if err := cors.Check(p.Cors); err != nil {
		return Properties{}, refuse("%v", err)
	}
	return p, nil
}

func trimByteOrderMark(doc []byte) []byte { return bytes.TrimPrefix(doc, []byte(byteOrderMark)) }

func (r *reader) logging(l *Logging) error {
	return r.fields(
		versionField(), flagField("Read", &l.Read), flagField("Write", &l.Write), flagField("Delete", &l.Delete),
		retentionField(&l.RetentionDays),
	)
}

func (r *reader) metrics(m *Metrics) error {
	apis, given := flagField("IncludeAPIs", &m.IncludeAPIs).orNone(), false
	read := apis.read
	apis.read = func(r *reader) error {
		given = true
		return read(r)
	}
	m.IncludeAPIs = false
	if err := r.fields(versionField(), flagField("Enabled", &m.Enabled), apis, retentionField(&m.RetentionDays)); err != nil {
		return err
	}
	if given != m.Enabled {
		return refuse("IncludeAPIs is required if metrics are enabled, and not allowed otherwise")
	}
	return nil
}

func versionField() field {
	return textField("Version", func(s string) error {
		if s != analyticsVersion {
			return refuse("the Version is not %s", analyticsVersion)
		}
		return nil
	})
}

// retentionField is a retention policy. Its Days are ignored unless it is enabled.
func retentionField(days *int) field {
	return field{name: "RetentionPolicy", read: func(r *reader) error {
		var enabled bool
		var n int
		if err := r.fields(flagField("Enabled", &enabled), numberField("Days", &n).orNone()); err != nil {
			return err
		}
		switch {
		case !enabled:
			n = 0
		case n < 1 || n > maxRetentionDays:
			return refuse("a retention of less than 1 or more than %d days", maxRetentionDays)
		}
		*days = n
		return nil
	}}
}

// AppendProperties appends the document that a client receives.
func AppendProperties(dst []byte, p Properties) []byte {
	dst = appendStart(append(dst, declaration...), "StorageServiceProperties")
	dst = appendText(appendStart(dst, "Logging"), "Version", analyticsVersion)
	dst = appendFlag(dst, "Read", p.Logging.Read)
	dst = appendFlag(dst, "Write", p.Logging.Write)
	dst = appendFlag(dst, "Delete", p.Logging.Delete)
	dst = appendEnd(appendRetention(dst, p.Logging.RetentionDays), "Logging")
	dst = appendMetrics(dst, "HourMetrics", p.HourMetrics)
	dst = appendMetrics(dst, "MinuteMetrics", p.MinuteMetrics)
	if len(p.Cors) == 0 {
		dst = appendEmpty(dst, "Cors")
	} else {
		dst = appendStart(dst, "Cors")
		for _, rule := range p.Cors {
			dst = appendRule(dst, rule)
		}
		dst = appendEnd(dst, "Cors")
	}
	return appendEnd(dst, "StorageServiceProperties")
}

func appendMetrics(dst []byte, name string, m Metrics) []byte {
	dst = appendText(appendStart(dst, name), "Version", analyticsVersion)
	dst = appendFlag(dst, "Enabled", m.Enabled)
	if m.Enabled {
		dst = appendFlag(dst, "IncludeAPIs", m.IncludeAPIs)
	}
	return appendEnd(appendRetention(dst, m.RetentionDays), name)
}

func appendRetention(dst []byte, days int) []byte {
	dst = appendFlag(appendStart(dst, "RetentionPolicy"), "Enabled", days > 0)
	if days > 0 {
		dst = appendText(dst, "Days", strconv.Itoa(days))
	}
	return appendEnd(dst, "RetentionPolicy")
}

// AppendStats appends the document of the secondary endpoint's statistics: it is live, and
// had all writes at lastSync.
func AppendStats(dst []byte, lastSync time.Time) []byte {
	const root, replication = "StorageServiceStats", "GeoReplication"
	dst = appendStart(appendStart(append(dst, declaration...), root), replication)
	dst = appendText(dst, "Status", "live")
	dst = appendText(dst, "LastSyncTime", lastSync.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	return appendEnd(appendEnd(dst, replication), root)
}

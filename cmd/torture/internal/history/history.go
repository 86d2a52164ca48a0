package history

import (
	"fmt"
	"math"
	"sync"
)

// Kind is the kind of an operation.
type Kind uint8

const (
	Get    Kind = iota
	Insert      // fails if the key exists
	Put         // replaces a value; with a condition, only that of Expected
	Delete      // as Put
	Create      // the table of the key
	Drop        // the table of the key
	kinds  = iota
)

func (k Kind) String() string {
	return [kinds]string{"get", "insert", "put", "delete", "create table", "drop table"}[k]
}

// Answer is the answer to an operation.
type Answer uint8

const (
	OK       Answer = iota
	NotFound        // the key has no value
	NoTable
	Exists   // the key has a value, or the table exists
	Mismatch // the value is not that of Expected
	Refused  // nothing happened
	Unknown  // the operation may have happened, or happen later
	answers  = iota
)

func (a Answer) String() string {
	return [answers]string{"ok", "not found", "no table", "exists", "mismatch", "refused", "unknown"}[a]
}

// Op is an operation on a key. Value is the value that was written or read: a number that
// no other write has, and 0 if there is none. Times are in nanoseconds of one clock.
type Op struct {
	Kind         Kind
	Answer       Answer
	Conditional  bool
	Client       int
	Server       int
	Call, Return int64
	Value        int64
	Expected     int64  // the value of the condition
	ETag         string // of Value, "" if the answer has none
	Time         int64  // Timestamp of Value in ticks, 0 if the answer has none
	Note         string // "" or what else is known of the answer
}

func (o Op) String() string {
	s := fmt.Sprintf("client %d at server %d, %.6f to %.6f s: %s", o.Client, o.Server, seconds(o.Call), seconds(o.Return), o.Kind)
	if o.Value != 0 {
		s += fmt.Sprintf(" of value %d", o.Value)
	}
	if o.Conditional {
		s += fmt.Sprintf(" if value %d", o.Expected)
	}
	s += ": " + o.Answer.String()
	if o.ETag != "" {
		s += ", ETag " + o.ETag
	}
	if o.Note != "" {
		s += ", " + o.Note
	}
	return s
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// never is the time at which an operation of unknown outcome returns.
const never = math.MaxInt64

// Batch is a transaction that inserts the rows of a partition with the numbers from First
// to First+Rows-1. No other batch has these numbers.
type Batch struct {
	ID           int64
	Partition    string
	First, Rows  int
	Answer       Answer
	Server       int
	Call, Return int64
	ETags        []string // of an acknowledged batch
}

// Page is a read of the rows of a partition from number From to before number To.
type Page struct {
	Partition    string
	From, To     int
	Rows         []Row
	Server       int
	Call, Return int64
}

// Row is a row of a page.
type Row struct {
	Number int
	Batch  int64
	ETag   string
}

// Log holds what happened. Its methods may be called concurrently.
type Log struct {
	mu      sync.Mutex
	keys    map[string][]Op
	batches []Batch
	pages   []Page
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{keys: map[string][]Op{}} }

// Add adds operations on a key.
func (l *Log) Add(key string, ops ...Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[key] = append(l.keys[key], ops...)
}

// AddBatch adds a batch.
func (l *Log) AddBatch(b Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, b)
}

// AddPage adds a page.
func (l *Log) AddPage(p Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = append(l.pages, p)
}

// End is the To of a page that reaches the end of its partition.
const End = math.MaxInt

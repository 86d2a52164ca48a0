package explorer

import (
	"encoding/json"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/livestate"
)

// Page is the data of a template.
type Page struct {
	Name    string // of the page, such as "table"
	Assets  string // the path of the assets, with a slash at the end
	Version string
	CSRF    string // "" without a session
	Session *Session
}

// Session describes the session of a browser.
type Session struct {
	Kind    string    `json:"kind"`    // owner, key or sas
	Account string    `json:"account"` // "" for the owner, who has all accounts
	Table   string    `json:"table"`   // the only table of a sas, "" for others
	Expires time.Time `json:"expires"`
	CSRF    string    `json:"csrf"`
}

// AccountInfo describes an account.
type AccountInfo struct {
	Name     string          `json:"name"`
	Where    string          `json:"where"` // the directory or the URL, "" for a signature
	Tables   int             `json:"tables"`
	Entities int64           `json:"entities"`
	Bytes    int64           `json:"bytes"`
	Totals   bool            `json:"totals"` // Entities and Bytes are known
	Exact    bool            `json:"exact"`  // Entities is no estimate
	Engine   bool            `json:"engine"` // Live has its engine
	Explains bool            `json:"explains"`
	ACL      bool            `json:"acl"` // api/acl works
	SAS      bool            `json:"sas"` // api/sas works
	ReadOnly bool            `json:"readOnly"`
	Can      map[string]bool `json:"can"` // list, create, drop, read, insert, update, upsert, delete, acl
	Failure  *Failure        `json:"failure,omitempty"`
}

// TableInfo describes a table. Entities and Bytes are 0 if the backend does not know them.
type TableInfo struct {
	Name     string `json:"name"`
	Created  string `json:"created"` // "" if it is not known
	Entities int64  `json:"entities"`
	Exact    bool   `json:"exact"`
	Bytes    int64  `json:"bytes"`
}

// Property is a property of an entity. Value is its text: a Binary in base64, a DateTime as
// 2024-02-03T04:05:06.789Z, numbers in decimal.
type Property struct {
	Name  string `json:"name"`
	Type  string `json:"type"` // such as Edm.Int64
	Value string `json:"value"`
	Cut   int    `json:"cut,omitempty"` // the length of the whole value in bytes, if Value is its start
}

// Entity is an entity.
type Entity struct {
	PartitionKey string     `json:"pk"`
	RowKey       string     `json:"rk"`
	Timestamp    string     `json:"timestamp,omitempty"`
	ETag         string     `json:"etag,omitempty"`
	Properties   []Property `json:"props"`
}

// Column is a property of the entities of a page.
type Column struct {
	Name  string   `json:"name"`
	Types []string `json:"types"` // those of the page, in the order of their first use
}

// EntityPage is a page of the entities of a query.
type EntityPage struct {
	Columns  []Column `json:"columns"` // those of select, or in the order of their first use
	Rows     []Entity `json:"rows"`
	Next     string   `json:"next"`
	Examined int      `json:"examined"` // 0 if the backend does not say
	Ms       float64  `json:"ms"`
}

// Written is the result of an operation.
type Written struct {
	Timestamp string `json:"timestamp,omitempty"`
	ETag      string `json:"etag,omitempty"` // "" for a deletion
}

// Failure is an error.
type Failure struct {
	Code     string  `json:"code"`
	Message  string  `json:"message"`
	Index    *int    `json:"index,omitempty"`    // of the operation that failed
	Position *int    `json:"position,omitempty"` // in a filter, in UTF-16 code units
	Path     []int   `json:"path,omitempty"`     // of the Condition that is not valid: indexes of items
	Property string  `json:"property,omitempty"` // the property or key that is not valid
	Detail   string  `json:"detail,omitempty"`   // what is wrong with it: the messages of the protocol seldom say it
	Theirs   *Entity `json:"theirs"`             // for 412 of api/entity
}

// Condition is a filter as a tree.
type Condition struct {
	Kind  string      `json:"kind"` // and, or, not, compare, true or false
	Items []Condition `json:"items,omitempty"`
	Name  string      `json:"name,omitempty"` // of the property
	Op    string      `json:"op,omitempty"`   // eq, ne, gt, ge, lt or le
	Type  string      `json:"type,omitempty"` // such as Edm.Int64
	Value string      `json:"value"`
}

// Explanation says what a query reads.
type Explanation struct {
	Scan      string   `json:"scan"` // nothing, points, rows, partitions or table
	Ranges    []string `json:"ranges"`
	Warning   string   `json:"warning"` // "" unless the query reads more than it needs
	Cure      string   `json:"cure"`
	Groups    *Groups  `json:"groups"`   // null if the backend does not say
	Examined  int      `json:"examined"` // 0 if the backend does not say
	Found     int64    `json:"found"`
	Ms        float64  `json:"ms"`
	Completed bool     `json:"completed"` // false if the time of the explanation ended first
}

// Groups counts the groups of rows of a table in files. Total is the sum of the others.
type Groups struct {
	Total    int `json:"total"`
	Outside  int `json:"outside"`  // of the ranges
	Excluded int `json:"excluded"` // by the bounds of columns
	Read     int `json:"read"`
}

// Job is work in the background.
type Job struct {
	jobs.Status
	Failure *Failure `json:"failure,omitempty"`
}

// Policy is a stored access policy. Times are as in 2024-02-03T04:05:06Z, "" without one.
type Policy struct {
	ID         string `json:"id"`
	Start      string `json:"start"`
	Expiry     string `json:"expiry"`
	Permission string `json:"permission"` // letters of raud
}

// SAS is a shared access signature.
type SAS struct {
	Query      string   `json:"query"`
	URL        string   `json:"url"`        // "" if the address of the service is not known
	Connection string   `json:"connection"` // a connection string
	Summary    []string `json:"summary"`    // what each parameter of this signature means
	Warnings   []string `json:"warnings"`
}

// Live is the state of the server and of the engines at one time. Counters grow until the
// server ends; a page computes rates from the difference of two states.
type Live struct {
	At       time.Time           `json:"at"`
	Engines  []livestate.Engine  `json:"engines"` // none over a backend without an engine
	Cache    *livestate.Cache    `json:"cache"`
	Pool     json.RawMessage     `json:"pool"` // of a backend with connections, null for others
	Requests livestate.Requests  `json:"requests"`
	History  []Sample            `json:"history,omitempty"` // of the last minutes, in the first event only
	Last     []livestate.Request `json:"last"`              // newest first, at most 50
	Slow     []livestate.Shape   `json:"slow"`              // by total time, at most 20
}

// Sample is a point of the history: counters, and percentiles of the requests since the
// sample before.
type Sample struct {
	At       time.Time          `json:"at"`
	Requests livestate.Requests `json:"requests"`
	Sums     map[string]float64 `json:"sums"` // of all engines, by the names of Figures
}

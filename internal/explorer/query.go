package explorer

import (
	"errors"
	"fmt"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/keyspan"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/store"
)

// filterAnswer is the result of POST api/filter.
type filterAnswer struct {
	Text  string     `json:"text"`
	Tree  *Condition `json:"tree"` // null for no filter, and after an error
	Error *Failure   `json:"error"`
}

// filter serves POST api/filter. An error of the filter is a result: the page asks while its
// user types.
func (x *exchange) filter() (any, error) {
	var in struct {
		Text string     `json:"text"`
		Tree *Condition `json:"tree"`
	}
	if err := x.read(&in); err != nil {
		return nil, err
	}
	if in.Tree != nil {
		tree, err := in.Tree.tree(nil, 0)
		if err != nil {
			return x.filterFailure("", err), nil
		}
		in.Text = string(tree.AppendText(nil))
	}
	e, err := parseFilter(in.Text)
	if err != nil {
		return x.filterFailure(in.Text, err), nil
	}
	answer := &filterAnswer{Text: in.Text}
	if e != nil {
		c := conditionOf(e.Tree())
		answer.Tree = &c
	}
	return answer, nil
}

// maxFilter limits the bytes of a filter, and of the names of properties, as the header of a
// request limits those of the protocol: the tree of a filter takes twenty times as much memory.
const maxFilter = 32 << 10

func parseFilter(text string) (*filter.Expr, error) {
	if len(text) > maxFilter {
		return nil, badInput(fmt.Sprintf("The filter has %d bytes, the limit is %d.", len(text), maxFilter))
	}
	return filter.Parse(text)
}

func (x *exchange) filterFailure(text string, err error) *filterAnswer {
	_, f := x.h.failureOf(err)
	if syntax := (*filter.Error)(nil); errors.As(err, &syntax) {
		f.Message = syntax.Message
	}
	var at *pathError
	if errors.As(err, &at) {
		f.Path, f.Position = at.path, nil
	}
	return &filterAnswer{Text: text, Error: f}
}

// conditionOf returns a tree as JSON.
func conditionOf(t filter.Tree) Condition {
	c := Condition{Kind: t.Op}
	switch t.Op {
	case "and", "or", "not":
		for _, item := range t.Items {
			c.Items = append(c.Items, conditionOf(item))
		}
		return c
	case "":
		b, _ := t.Value.Bool()
		c.Kind = fmt.Sprint(b)
		return c
	}
	c.Kind, c.Op, c.Name = "compare", t.Op, t.Name
	c.Type, c.Value = t.Value.Type().String(), string(odata.AppendValue(nil, t.Value))
	if at, ok := t.Value.DateTime(); ok {
		c.Value = string(filter.AppendDateTime(nil, at))
	}
	return c
}

// pathError is an error of a condition in a tree.
type pathError struct {
	path []int
	err  error
}

func (e *pathError) Error() string { return e.err.Error() }

func (e *pathError) Unwrap() error { return e.err }

// maxDepth limits the depth of a tree. Parse has a limit of its own.
const maxDepth = 200

// tree returns c as a tree, and an error for the first comparison that is not valid by
// itself. path has the position of c in the whole tree.
func (c *Condition) tree(path []int, depth int) (filter.Tree, error) {
	t := filter.Tree{Op: c.Kind}
	switch c.Kind {
	case "and", "or", "not":
		if depth > maxDepth || c.Kind == "not" && len(c.Items) != 1 {
			return t, &pathError{path, badInput("A negation has one condition, and conditions may not be nested too deep.")}
		}
		for i := range c.Items {
			item, err := c.Items[i].tree(append(path[:len(path):len(path)], i), depth+1)
			if err != nil {
				return t, err
			}
			t.Items = append(t.Items, item)
		}
		return t, nil
	case "true", "false":
		return filter.Tree{Value: edm.Boolean(c.Kind == "true")}, nil
	case "compare":
	default:
		return t, &pathError{path, badInput("There is no condition of this kind.")}
	}
	switch c.Op {
	case "eq", "ne", "gt", "ge", "lt", "le":
	default:
		return t, &pathError{path, badInput("There is no operator of this name.")}
	}
	if c.Name == "" {
		return t, &pathError{path, badInput("Choose a property.")}
	}
	v, err := parseValue(c.Name, c.Type, c.Value)
	if early, ok := filter.ParseDateTime(c.Value); ok && c.Type == edm.TypeDateTime.String() {
		v, err = early, nil
	}
	if err != nil {
		return t, &pathError{path, badInput("The value is not valid for the type " + c.Type + ".")}
	}
	t = filter.Tree{Op: c.Op, Name: c.Name, Value: v}
	e, err := parseFilter(string(t.AppendText(nil)))
	if err != nil {
		return t, &pathError{path, err}
	}
	// A name with blanks or operators would change the meaning.
	if again := e.Tree(); again.Op != t.Op || again.Name != t.Name {
		return t, &pathError{path, badInput("This name cannot be in a filter.")}
	}
	return t, nil
}

// explainTime limits the time of an explanation.
const explainTime = 10 * time.Second

func (x *exchange) explain() (any, error) {
	a, table, q, err := x.query()
	if err != nil {
		return nil, err
	}
	q.Select = []string{}
	d := &Explanation{}
	s, err := x.h.read(x.r.Context(), a.Store, table, q, explainTime, func(edm.Row) bool {
		d.Found++
		return true
	})
	if err != nil {
		return nil, err
	}
	d.Examined, d.Ms, d.Completed = s.examined, milliseconds(s.took), s.next == nil
	d.Scan, d.Warning, d.Cure = scanOf(q.Filter)
	d.Ranges = []string{}
	for _, r := range q.Filter.Ranges() {
		d.Ranges = append(d.Ranges, keyspan.Describe(r))
	}
	d.Groups = groupsOf(a.Store.Query(x.r.Context(), table, q))
	return d, nil
}

// groupsOf returns the groups that a query reads, nil if the backend does not say, and closes its
// cursor. It examines the index of the whole table, so pages of entities do without it.
func groupsOf(c store.Cursor) *Groups {
	defer c.Close()
	e, ok := c.(store.Explainer)
	if !ok {
		return nil
	}
	p, err := e.Explain()
	if err != nil {
		return nil
	}
	return &Groups{Total: p.Groups, Outside: p.Groups - p.InRanges, Excluded: p.Excluded, Read: p.InRanges - p.Excluded}
}

// scanOf returns how much of a table a filter reads, and a warning with its cure if that is
// more than it keeps. A filter without a cost for each row keeps all that it reads.
func scanOf(e *filter.Expr) (scan, warning, cure string) {
	if reads, condition := keyspan.Advice(e.Ranges()); reads != "" && e.Cost() > 0 {
		warning = "The query reads " + reads + "."
		cure = "Add a condition " + condition + ", joined by \"and\"."
	}
	return keyspan.Of(e.Ranges()).String(), warning, cure
}

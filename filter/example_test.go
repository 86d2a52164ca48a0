package filter_test

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

func Example() {
	unpaid := filter.MustParse("PartitionKey eq 'eu' and Total gt 50 and Paid eq false")
	order := edm.Entity{
		Key:        edm.Key{Partition: "eu", Row: "0002"},
		Properties: edm.Properties{{Name: "Total", Value: edm.Double(99)}, {Name: "Paid", Value: edm.Boolean(false)}},
	}
	fmt.Println(unpaid.Match(order.View()))
	// Output: true
}

func ExampleParse_error() {
	_, err := filter.Parse("aaa bbb ccc")
	var refusal *filter.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Unsupported, refusal.Position)
		fmt.Println(refusal.Message)
	}
	// Output:
	// false 7
	// Syntax error at position 7 in 'aaa bbb ccc'.
}

// A Tree writes values of variables into a filter, with their quotes and suffixes.
func ExampleTree() {
	region, customer := "eu", "O'Neil"
	tree := filter.Tree{Op: "and", Items: []filter.Tree{
		{Op: "eq", Name: "PartitionKey", Value: edm.String(region)},
		{Op: "or", Items: []filter.Tree{
			{Op: "eq", Name: "Customer", Value: edm.String(customer)},
			{Op: "ge", Name: "Total", Value: edm.Int64(1000)},
		}},
	}}
	expr, err := filter.Parse(string(tree.AppendText(nil)))
	fmt.Println(expr, err)
	// Output: PartitionKey eq 'eu' and (Customer eq 'O''Neil' or Total ge 1000L) <nil>
}

package cors

import (
	"strings"
	"testing"
)

// TestMethods checks rules for methods: clients that allow all also name TRACE and CONNECT.
func TestMethods(t *testing.T) {
	for methods, valid := range map[string]bool{
		"GET,HEAD,POST,PUT,PATCH,DELETE,TRACE,OPTIONS,CONNECT,MERGE": true,
		"GET,LOCK": false,
		"get":      false,
		"":         false,
	} {
		rule := Rule{AllowedMethods: strings.Split(methods, ","), AllowedOrigins: []string{"www.xyz.com"}}
		if err := Check([]Rule{rule}); (err == nil) != valid {
			t.Errorf("%q: %v, want valid %v", methods, err, valid)
		}
	}
}

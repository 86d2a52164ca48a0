package remote_test

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store/remote"
)

const testKey = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"

// signed returns how an endpoint signs requests.
func signed(e remote.Endpoint) string {
	switch {
	case e.Key != "":
		return "account key"
	case e.SAS != "":
		return "SAS"
	}
	return "no credential"
}

func TestParseConnectionString(t *testing.T) {
	for _, c := range []struct {
		text, url, account, signed string
	}{
		{"UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", "account key"},
		{"usedevelopmentstorage=True;DevelopmentStorageProxyUri=http://azurite;", "http://azurite:10002/devstoreaccount1", "devstoreaccount1", "account key"},
		{
			"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=" + testKey + ";EndpointSuffix=core.windows.net",
			"https://shop.table.core.windows.net", "shop", "account key",
		},
		{"AccountName=shop;AccountKey=" + testKey, "https://shop.table.core.windows.net", "shop", "account key"},
		{"AccountName=shop;AccountKey=" + testKey + ";EndpointSuffix=core.chinacloudapi.cn", "https://shop.table.core.chinacloudapi.cn", "shop", "account key"},
		{"accountname=shop;accountkey=" + testKey + ";TableEndpoint=http://10.0.0.1:7/shop/;", "http://10.0.0.1:7/shop", "shop", "account key"},
		{"TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=sv=2019&sig=abc", "https://shop.table.core.windows.net", "shop", "SAS"},
		{"AccountName=shop;SharedAccessSignature=?sv=2019&sig=abc", "https://shop.table.core.windows.net", "shop", "SAS"},
		{"TableEndpoint=https://shop.table.core.windows.net/?sv=2019&sig=abc", "https://shop.table.core.windows.net", "shop", "SAS"},
	} {
		e, err := remote.ParseConnectionString(c.text)
		if err != nil || e.URL != c.url || e.Account != c.account || signed(e) != c.signed {
			t.Errorf("%s: got %s, account %s, %s, %v; want %s, %s, %s", c.text, e.URL, e.Account, signed(e), err, c.url, c.account, c.signed)
		}
		if strings.Contains(e.String(), "sig=") || strings.Contains(e.SAS, "?") {
			t.Errorf("%s: the text %s or the SAS %s is not right", c.text, e, e.SAS)
		}
	}
}

// TestInvalidEndpoints checks that no error repeats a part of the text, which can be a
// secret.
func TestInvalidEndpoints(t *testing.T) {
	const secret = "topsecret"
	for _, text := range []string{
		"", ";;", secret, "AccountKey=" + secret, "AccountName=shop", "AccountName=shop;" + secret, "TableEndpoint=" + secret + ";AccountKey=" + secret,
		"TableEndpoint=https://u:" + secret + "@host/shop;AccountKey=x", "BlobEndpoint=https://shop.blob.core.windows.net;AccountKey=" + secret,
		"UseDevelopmentStorage=true;DevelopmentStorageProxyUri=" + secret, "TableEndpoint=http://127.0.0.1:1;AccountKey=" + secret,
		"TableEndpoint=http://127.0.0.1:1/a/b;AccountKey=" + secret, "UseDevelopmentStorage=false",
	} {
		if _, err := remote.ParseConnectionString(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
	for _, text := range []string{"", secret, "ftp://host/shop", "http://", "https://user:" + secret + "@host/a", "https://host", "http://h/a/b?" + secret} {
		if _, err := remote.ParseURL(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
	e := remote.Endpoint{URL: "https://shop.table.core.windows.net", Account: "shop", Key: secret + "*"}
	if _, err := remote.Open(e, remote.Options{}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a key that is not base64: %v", err)
	}
	e = remote.Endpoint{URL: "http://127.0.0.1:10002/shop", Key: "c2VjcmV0"}
	if _, err := remote.Open(e, remote.Options{}); err == nil || !strings.HasSuffix(err.Error(), ": a key needs the name of its account") {
		t.Errorf("a key without an account: %v", err)
	}
	e = remote.Endpoint{URL: "http://shop.example", Entra: true}
	if _, err := remote.Open(e, remote.Options{}); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("Entra ID over http: %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for _, c := range []struct{ text, url, account, signed string }{
		{"http://127.0.0.1:10002/devstoreaccount1", "http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", "account key"},
		{"http://localhost:10002/devstoreaccount1/", "http://localhost:10002/devstoreaccount1", "devstoreaccount1", "account key"},
		{"https://example.com/devstoreaccount1", "https://example.com/devstoreaccount1", "devstoreaccount1", "no credential"},
		{"https://shop.table.core.windows.net", "https://shop.table.core.windows.net", "shop", "no credential"},
		{"https://shop-secondary.table.core.windows.net/", "https://shop-secondary.table.core.windows.net", "shop", "no credential"},
		{"https://shop.table.core.windows.net/?sv=2019&sig=x%2B", "https://shop.table.core.windows.net", "shop", "SAS"},
	} {
		e, err := remote.ParseURL(c.text)
		if err != nil || e.URL != c.url || e.Account != c.account || signed(e) != c.signed {
			t.Errorf("%s: got %s, account %s, %s, %v; want %s, %s, %s", c.text, e.URL, e.Account, signed(e), err, c.url, c.account, c.signed)
		}
	}
}

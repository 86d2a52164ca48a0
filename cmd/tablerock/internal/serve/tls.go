package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of a self-signed certificate. No account can have these names.
const (
	selfSignedCert = "self-signed.crt"
	selfSignedKey  = "self-signed.key"
)

// selfSignedValidity is the validity of a self-signed certificate. Clients accept no longer
// one.
const selfSignedValidity = 365 * 24 * time.Hour

// tlsConfig returns the TLS configuration, nil without TLS.
func (c *Config) tlsConfig(host string) (*tls.Config, error) {
	if !c.tls() {
		return nil, nil
	}
	pair, err := c.certificate(host)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (c *Config) certificate(host string) (tls.Certificate, error) {
	if c.Cert != "" {
		return c.givenCertificate()
	}
	if c.InMemory {
		cert, key, err := makeCertificate(host)
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.X509KeyPair(cert, key)
	}
	certFile, keyFile := filepath.Join(c.Data, selfSignedCert), filepath.Join(c.Data, selfSignedKey)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || pair.Leaf.VerifyHostname(host) != nil || time.Until(pair.Leaf.NotAfter) < 24*time.Hour {
		pair, err = writeCertificate(certFile, keyFile, host)
	}
	if err == nil {
		c.say("clients have to trust the certificate in %s", certFile)
	}
	return pair, err
}

// givenCertificate reads the certificate of --cert.
func (c *Config) givenCertificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	switch {
	case err == nil:
		return pair, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return pair, fmt.Errorf("--cert %s and --key %s: %w", c.Cert, c.Key, err)
	}
	return pair, usagef("--cert %s and --key %s: %v", c.Cert, c.Key, err)
}

// writeCertificate makes a certificate and stores it, so that clients trust the server
// after a restart, too.
func writeCertificate(certFile, keyFile, host string) (tls.Certificate, error) {
	cert, key, err := makeCertificate(host)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(certFile), 0o700),
		os.WriteFile(keyFile, key, 0o600),
		os.WriteFile(certFile, cert, 0o600),
	); err != nil {
		return tls.Certificate{}, fmt.Errorf("--self-signed: %w", err)
	}
	return tls.X509KeyPair(cert, key)
}

// makeCertificate makes a certificate for host and for all names of this machine.
func makeCertificate(host string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Tablerock, for development"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(selfSignedValidity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost", "*.table.localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "localhost" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

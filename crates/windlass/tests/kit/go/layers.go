package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

type file struct {
	Name   string        `json:"name"`
	Mode   int64         `json:"mode"`
	Digest digest.Digest `json:"digest"`
}

// As kit packs a path of the Kitfile: with the folders above it, of nobody's and of no time.
func kitTar(folder, wanted string) ([]byte, error) {
	var into bytes.Buffer
	archive := tar.NewWriter(&into)
	err := filepath.Walk(folder, func(at string, info fs.FileInfo, err error) error {
		name, relative := filepath.Rel(folder, at)
		if err != nil || relative != nil || name == "." {
			return err
		}
		isAbove := strings.HasPrefix(wanted, name+"/") && info.IsDir()
		isWithin := name == wanted || strings.HasPrefix(name, wanted+"/") || wanted == "."
		if !isWithin && !isAbove || name == "Kitfile" {
			return nil
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		header.Name = name
		header.Uid, header.Gid, header.Uname, header.Gname = 1000, 0, "", ""
		header.ModTime, header.AccessTime, header.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
		return add(archive, header, at)
	})
	if err != nil {
		return nil, err
	}
	err = archive.Close()
	return into.Bytes(), err
}

// As modctl packs a single file: as it is on the disk, and without the folders above it.
func modctlTar(folder, name string) ([]byte, error) {
	var into bytes.Buffer
	archive := tar.NewWriter(&into)
	at := filepath.Join(folder, name)
	info, err := os.Stat(at)
	if err != nil {
		return nil, err
	}
	header, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return nil, err
	}
	header.Name = name
	if err := add(archive, header, at); err != nil {
		return nil, err
	}
	err = archive.Close()
	return into.Bytes(), err
}

func add(archive *tar.Writer, header *tar.Header, at string) error {
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	content, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}

func compress(content []byte, by string) ([]byte, error) {
	var into bytes.Buffer
	var stream io.WriteCloser
	var err error
	switch by {
	case "none":
		return content, nil
	case "gzip":
		stream = gzip.NewWriter(&into)
	case "gzip-fastest":
		stream, err = gzip.NewWriterLevel(&into, gzip.BestSpeed)
	case "zstd":
		stream, err = zstd.NewWriter(&into)
	default:
		err = fmt.Errorf("cannot compress by %s", by)
	}
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write(content); err != nil {
		return nil, err
	}
	err = stream.Close()
	return into.Bytes(), err
}

// What a layer of this type is made of.
func expand(content []byte, mediaType string) ([]byte, error) {
	stream := io.Reader(bytes.NewReader(content))
	var err error
	switch {
	case strings.HasSuffix(mediaType, "+gzip"):
		stream, err = gzip.NewReader(stream)
	case strings.HasSuffix(mediaType, "+zstd"):
		stream, err = zstd.NewReader(stream)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(stream)
}

// What kit would unpack, which takes files and folders and nothing else.
func files(archive []byte) ([]file, error) {
	var found []file
	entries := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := entries.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if !filepath.IsLocal(header.Name) {
			return nil, fmt.Errorf("illegal file path: %s", header.Name)
		}
		switch header.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			digest, err := digest.FromReader(entries)
			if err != nil {
				return nil, err
			}
			found = append(found, file{header.Name, header.Mode, digest})
		default:
			return nil, fmt.Errorf("unrecognized type in archive: %s", header.Name)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0
// Writes the files of this folder: `npm i @duckdb/node-api hyparquet-writer parquet-wasm && node make.mjs FOLDER`.
import { DuckDBInstance } from '@duckdb/node-api'
import { parquetWriteFile } from 'hyparquet-writer'
import * as wasm from 'parquet-wasm/node'
import fs from 'fs'

const out = process.argv[2]
const db = await (await DuckDBInstance.create()).connect()
await db.run("SET TimeZone='UTC'")

// Three records: values, nulls, other values.
const columns = {
  yes: ['true', 'false'], i8: ["(-128)::TINYINT", "127::TINYINT"], i32: ['(-2147483648)::INTEGER', '7::INTEGER'],
  i64: ['(-9223372036854775808)::BIGINT', '9223372036854775807::BIGINT'], u8: ['255::UTINYINT', '0::UTINYINT'],
  u32: ['4294967295::UINTEGER', '1::UINTEGER'], u64: ['18446744073709551615::UBIGINT', '3::UBIGINT'],
  f32: ['0.1::FLOAT', '(-2.5)::FLOAT'], f64: ['0.1::DOUBLE', '3::DOUBLE'], d4: ["(-1.5)::DECIMAL(5,2)", "12.34::DECIMAL(5,2)"],
  d18: ["(-1.5)::DECIMAL(18,3)", "123456789012345.678::DECIMAL(18,3)"],
  d38: ["(-1.5)::DECIMAL(38,5)", "123456789012345678901234567890.12345::DECIMAL(38,5)"],
  d0: ["42::DECIMAL(20,0)", "(-43)::DECIMAL(20,0)"], text: ["'Zürich, \"north\"'", "''"], number: ["'12'", "'x'"],
  day: ["DATE '2026-11-28'", "DATE '1899-12-31'"], ms: ["TIMESTAMP_MS '2026-11-28 15:04:05.25'", "TIMESTAMP_MS '1969-12-31 23:59:59.999'"],
  us: ["TIMESTAMP '2026-11-28 15:04:05.000006'", "TIMESTAMP '2026-11-28 15:04:05'"], ns: ["TIMESTAMP_NS '2026-11-28 15:04:05.000000007'", "TIMESTAMP_NS '1969-12-31 23:59:59.5'"],
  utc: ["TIMESTAMPTZ '2026-11-28 15:04:05+00'", "TIMESTAMPTZ '2026-11-28 00:00:00+00'"], clock: ["TIME '15:04:05.5'", "TIME '00:00:00'"],
  id: ["'00112233-4455-6677-8899-aabbccddeeff'::UUID", "'ffffffff-0000-0000-0000-000000000001'::UUID"], raw: ["'\\x00\\xFF'::BLOB", "'a'::BLOB"],
  numbers: ['[1, 2, 3]::INTEGER[]', '[]::INTEGER[]'], halves: ['[0.5, 1.5]::DOUBLE[]', '[2.5]::DOUBLE[]'], words: ["['a', 'b']", "['']"],
  place: ["{'x': 1, 'y': 'n'}", "{'x': 2, 'y': 's'}"],
}
await db.run(`CREATE TABLE t AS SELECT ${Object.entries(columns).map(([name, [a, b]]) =>
  `CASE i WHEN 0 THEN ${a} WHEN 2 THEN ${b} END AS ${name}`)} FROM range(3) r(i) ORDER BY i`)
const duckdb = (name, options) => db.run(`COPY t TO '${out}/${name}' (FORMAT parquet, ${options})`)
await duckdb('duckdb-snappy.parquet', 'COMPRESSION snappy, PARQUET_VERSION v1')
await duckdb('duckdb-delta-zstd.parquet', 'COMPRESSION zstd, PARQUET_VERSION v2')
await duckdb('plain.parquet', 'COMPRESSION uncompressed')

const { Compression, EnabledStatistics, Encoding, WriterVersion } = wasm
const again = (name, version, codec, encodings) => {
  let p = new wasm.WriterPropertiesBuilder().setWriterVersion(version).setCompression(codec).setMaxRowGroupSize(2)
    .setStatisticsEnabled(EnabledStatistics.None)
  if (encodings.length > 0) p = p.setDictionaryEnabled(false)
  for (const [names, encoding] of encodings) for (const n of names) p = p.setColumnEncoding(n, encoding)
  fs.writeFileSync(`${out}/${name}`, wasm.writeParquet(wasm.readParquet(fs.readFileSync(`${out}/plain.parquet`)), p.build()))
}
again('wasm-v2-lz4.parquet', WriterVersion.V2, Compression.LZ4_RAW, [
  [['i32', 'i64', 'u32', 'u64', 'day', 'us'], Encoding.DELTA_BINARY_PACKED], [['text'], Encoding.DELTA_BYTE_ARRAY],
  [['number'], Encoding.DELTA_LENGTH_BYTE_ARRAY], [['yes'], Encoding.RLE]])
again('wasm-split-gzip.parquet', WriterVersion.V1, Compression.GZIP, [
  [['i32', 'i64', 'f32', 'f64', 'd38', 'day', 'us'], Encoding.BYTE_STREAM_SPLIT]])
fs.unlinkSync(`${out}/plain.parquet`)

parquetWriteFile({ filename: `${out}/hyparquet.parquet`, codec: 'UNCOMPRESSED', statistics: false, columnData: [
  { name: 'half', data: [1.5, null, -0.25, 65504], type: 'FLOAT16' },
  { name: 'text', data: ['hello', 'help', null, 'helping'], type: 'STRING', encoding: 'DELTA_BYTE_ARRAY' },
  { name: 'label', data: [1, 0, 1, 1], type: 'INT32', nullable: false },
] })

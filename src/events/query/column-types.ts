/** ClickHouse names of column types, which PostHog clients expect. */

import type { DuckDBType } from "@duckdb/node-api";

type Api = typeof import("@duckdb/node-api");

/** The name of a column's type; nullability is not expressed. @param timezone the zone of times */
export function columnTypeName(api: Api, type: DuckDBType, timezone: string): string {
  const { DuckDBTypeId: id } = api;
  switch (type.typeId) {
    case id.BOOLEAN:
      return "Bool";
    case id.TINYINT:
      return "Int8";
    case id.SMALLINT:
      return "Int16";
    case id.INTEGER:
      return "Int32";
    case id.BIGINT:
      return "Int64";
    case id.HUGEINT:
      return "Int128";
    case id.UTINYINT:
      return "UInt8";
    case id.USMALLINT:
      return "UInt16";
    case id.UINTEGER:
      return "UInt32";
    case id.UBIGINT:
      return "UInt64";
    case id.UHUGEINT:
      return "UInt128";
    case id.FLOAT:
      return "Float32";
    case id.DOUBLE:
      return "Float64";
    case id.DECIMAL: {
      const { width, scale } = type as DuckDBType & { width: number; scale: number };
      return `Decimal(${width}, ${scale})`;
    }
    case id.DATE:
      return "Date";
    case id.TIMESTAMP:
    case id.TIMESTAMP_TZ:
      return `DateTime64(6, '${timezone}')`;
    case id.UUID:
      return "UUID";
    case id.LIST:
    case id.ARRAY: {
      const { valueType } = type as DuckDBType & { valueType: DuckDBType };
      return `Array(${columnTypeName(api, valueType, timezone)})`;
    }
    case id.MAP: {
      const { keyType, valueType } = type as DuckDBType & { keyType: DuckDBType; valueType: DuckDBType };
      return `Map(${columnTypeName(api, keyType, timezone)}, ${columnTypeName(api, valueType, timezone)})`;
    }
    // JSON, structs, intervals and others are returned as strings or JSON.
    default:
      return "String";
  }
}

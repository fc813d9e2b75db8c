/** Properties without a column, which a query reads from the JSON of events. */

import type { EventSql } from "../sql-dialect.ts";

/** Parses the JSON of an event once for all properties that a query reads, in a subquery `events e`. */
export class ParsedProperties {
  /** Names of the columns of the subquery, by property. */
  private readonly columns = new Map<string, string>();
  /** Existing columns of properties: `*` does not include them in ClickHouse. */
  private readonly existing = new Set<string>();
  /** The store for all SQL over the subquery. */
  readonly store: EventSql;

  constructor(private readonly source: EventSql) {
    const { eventProperties: location } = source;
    this.store =
      typeof location === "string"
        ? source
        : {
            ...source,
            eventProperties: {
              json: location.json,
              findColumn: (name) => {
                const existing = location.findColumn(name);
                if (existing === undefined) return `e.${this.column(name)}`;
                this.existing.add(existing);
                return existing;
              },
            },
          };
  }

  private column(name: string): string {
    const column = this.columns.get(name) ?? `property_${this.columns.size}`;
    this.columns.set(name, column);
    return column;
  }

  /**
   * The table of events `e` with the properties; called after all SQL over it.
   *
   * @param conditions on `e`, without properties. @param read names of the events whose properties are read; undefined:
   * all. @param unread names of further events: DuckDB does not read their JSON at all.
   */
  events(
    conditions: readonly string[],
    read: readonly string[] | undefined,
    unread: readonly string[],
  ): string {
    const { dialect, eventProperties: location } = this.source;
    if (this.columns.size === 0 || typeof location === "string") return "events e";
    const names = [...this.columns.keys()];
    const branch = (events: readonly string[] | undefined, texts: readonly string[]) => {
      const columns = texts.map((text, index) => `, ${text} AS ${this.columns.get(names[index]!)}`);
      // Not IN, which DuckDB does not apply while it scans.
      const within = events && [`(${events.map((name) => `e.event = ${dialect.text(name)}`).join(" OR ")})`];
      const existing = [...this.existing].map((column) => `, ${column}`);
      return `SELECT e.*${existing.join("")}${columns.join("")} FROM events e WHERE ${[...conditions, ...(within ?? [])].join(" AND ")}`;
    };
    const all = [branch(read, dialect.memberTexts(location.json, names))];
    if (read !== undefined && unread.length > 0)
      all.push(
        branch(
          unread,
          names.map(() => dialect.nullText),
        ),
      );
    return `(${all.join(" UNION ALL ")}) e`;
  }
}

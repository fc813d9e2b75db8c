/** Where PostgreSQL is, as the setting `postgres-url` says it. */

export interface PostgresAddress {
  /** In the order in which they are tried. */
  hosts: { host: string; port: number }[];
  user: string;
  password: string;
  database: string;
  tls: boolean;
}

const hostsMax = 8;
const usualPort = 5432;
const pattern = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/;
const hostPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

/**
 * Reads `postgres://user:password@host:5432,host:5432/database?sslmode=require`.
 *
 * @returns undefined when it cannot be read, or names something that is not known.
 */
export function parsePostgresUrl(text: string): PostgresAddress | undefined {
  const [, login = "", places = "", name = "", query = ""] = pattern.exec(text) ?? [];
  const hosts = places.split(",").map((place) => {
    const [, host = "", port] = hostPattern.exec(place) ?? [];
    return { host: host.replace(/^\[|\]$/g, ""), port: port === undefined ? usualPort : Number(port) };
  });
  if (hosts.length > hostsMax) return undefined;
  if (hosts.some(({ host, port }) => host === "" || port < 1 || port > 65_535)) return undefined;
  const parameters = new URLSearchParams(query);
  if ([...parameters.keys()].some((key) => key !== "sslmode")) return undefined;
  const mode = parameters.get("sslmode") ?? "disable";
  if (mode !== "disable" && mode !== "require") return undefined;
  const colon = login.indexOf(":");
  try {
    const user = decodeURIComponent(colon === -1 ? login : login.slice(0, colon)) || "flagkeep";
    const password = colon === -1 ? "" : decodeURIComponent(login.slice(colon + 1));
    return { hosts, user, password, database: decodeURIComponent(name), tls: mode === "require" };
  } catch {
    // A per cent sign that encodes nothing.
    return undefined;
  }
}

/** The address as `parsePostgresUrl` reads it, with the password. */
export function postgresUrl(address: PostgresAddress): string {
  const { user, password, database, tls } = address;
  const login = [user, ...(password === "" ? [] : [password])].map(encodeURIComponent).join(":");
  return `postgres://${login}@${placesOf(address)}/${encodeURIComponent(database)}${tls ? "?sslmode=require" : ""}`;
}

/** The address for people: without the password. */
export function shownPostgres(address: PostgresAddress): string {
  return `postgres://${encodeURIComponent(address.user)}@${placesOf(address)}/${address.database}`;
}

function placesOf({ hosts }: PostgresAddress): string {
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

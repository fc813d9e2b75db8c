/** Address of PostgreSQL, as in the setting `postgres-url`. */

export interface PostgresAddress {
  /** In the order of connection attempts. */
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
 * Parses `postgres://user:password@host:5432,host:5432/database?sslmode=require`.
 *
 * @returns undefined when invalid, or with an unknown parameter.
 */
export function parsePostgresUrl(text: string): PostgresAddress | undefined {
  const [, login = "", positions = "", name = "", query = ""] = pattern.exec(text) ?? [];
  const hosts = positions.split(",").map((address) => {
    const [, host = "", port] = hostPattern.exec(address) ?? [];
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
    // An invalid percent-encoding.
    return undefined;
  }
}

/** The URL that `parsePostgresUrl` reads, with the password. */
export function postgresUrl(address: PostgresAddress): string {
  const { user, password, database, tls } = address;
  const login = [user, ...(password === "" ? [] : [password])].map(encodeURIComponent).join(":");
  return `postgres://${login}@${getLocations(address)}/${encodeURIComponent(database)}${tls ? "?sslmode=require" : ""}`;
}

/** The address without the password, for messages. */
export function redactPostgresUrl(address: PostgresAddress): string {
  return `postgres://${encodeURIComponent(address.user)}@${getLocations(address)}/${address.database}`;
}

function getLocations({ hosts }: PostgresAddress): string {
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

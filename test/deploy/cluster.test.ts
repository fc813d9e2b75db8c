/** The files for several nodes name what there is, fit each other, and do what they say where that can be run. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Server, Subprocess } from "bun";
import { parse, parseAllDocuments } from "yaml";
import { readConfig, unknownVariables } from "../../src/config/read.ts";
import { parseClickHouseUrl } from "../../src/lib/store-urls.ts";
import { freePort } from "../support/ports.ts";
import { ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";

const folder = join(import.meta.dir, "../../deploy/cluster");
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const dockerfile = readFileSync(join(folder, "../Dockerfile"), "utf8");
const imagePort = Number(/^EXPOSE (\d+)$/m.exec(dockerfile)![1]);
const imageVolume = /^VOLUME (\S+)$/m.exec(dockerfile)![1]!;
const [, imageUser, imageGroup] = /^USER (\d+):(\d+)$/m.exec(dockerfile)!;

interface Node {
  host: string;
  port: number;
}
const cluster = parse(read("clickhouse/cluster.yaml")) as {
  remote_servers: Record<string, { shard: { internal_replication: boolean; replica: Node[] }[] }>;
  macros: { shard: number; replica: { "@from_env": string } };
  zookeeper: { node: Node[] };
};
const batchStore = parse(read("clickhouse/keeper.yaml")) as {
  keeper_server: {
    tcp_port: number;
    server_id: { "@from_env": string };
    raft_configuration: { server: { id: number; hostname: string; port: number }[] };
  };
};
const replicas = Object.values(cluster.remote_servers).flatMap(({ shard }) =>
  shard.flatMap(({ replica }) => replica.map(({ host }) => host)),
);
const keepers = batchStore.keeper_server.raft_configuration.server;

/** The settings of nodes about ClickHouse match its configuration. */
function expectEventsAddress(text: string, host: string): void {
  const address = parseClickHouseUrl(text)!;
  const shards = cluster.remote_servers[address.cluster!]!.shard;
  for (const { replica, internal_replication } of shards)
    expect([replica.length, internal_replication]).toEqual([Number(address.quorum), true]);
  expect(address.url).toBe(`http://${host}:8123`);
}

test("ClickHouse finds its keepers, and they each other", () => {
  expect(cluster.zookeeper.node).toEqual(
    keepers.map(({ hostname }) => ({ host: hostname, port: batchStore.keeper_server.tcp_port })),
  );
  expect(keepers.map(({ id }) => id)).toEqual([1, 2, 3]);
});

describe("compose", () => {
  interface Service {
    image?: string;
    hostname?: string;
    environment?: Record<string, string>;
    volumes: string[];
    networks: string[] | Record<string, { aliases: string[] }>;
    ports?: string[];
    depends_on?: unknown;
    stop_grace_period?: string;
  }
  const text = read("compose.yaml");
  const { services, volumes, networks } = parse(text, { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
    networks: { cluster: { ipam: { config: { subnet: string }[] } } };
  };
  const names = Object.keys(services);
  const nodes = names.filter((name) => name.startsWith("flagkeep-"));
  /** A value as the shell's substitution leaves it; what has to be set is `secret`. */
  const substituted = (value: unknown) =>
    String(value)
      .replace(/\$\{\w+:-([^}]*)\}/g, "$1")
      .replace(/\$\{\w+:\?\}/g, "secret");
  const environment = (name: string) =>
    Object.fromEntries(
      Object.entries(services[name]!.environment ?? {}).map(([key, value]) => [key, substituted(value)]),
    );

  test("has three nodes with valid settings", () => {
    expect(nodes).toHaveLength(3);
    for (const node of nodes) {
      expect(unknownVariables(environment(node))).toEqual([]);
      const config = readConfig({}, environment(node));
      expect(config["trusted-proxies"]).toEqual(networks.cluster.ipam.config.map(({ subnet }) => subnet));
      const grace = Number(/^(\d+)s$/.exec(services[node]!.stop_grace_period!)![1]);
      expect(grace * 1_000).toBeGreaterThan(config["shutdown-timeout"] + 10_000);
      expect(services[node]!.volumes).toEqual([`${node}:${imageVolume}`]);
      expectEventsAddress(environment(node).FLAGKEEP_EVENTS_URL!, "balancer");
      const hosts = config["postgres-url"]!.hosts.map(({ host, port }) => `${host}:${port}`);
      expect(hosts).toEqual(["postgres-1:5432", "postgres-2:5432"]);
    }
  });

  test("names services, volumes, files and secrets that are there", () => {
    for (const [name, service] of Object.entries(services)) {
      for (const volume of service.volumes) {
        const source = volume.split(":")[0]!;
        if (source.startsWith("./")) expect(() => read(source) || true).not.toThrow(/ENOENT/);
        else expect(volumes).toHaveProperty(source);
      }
      const awaited = Array.isArray(service.depends_on)
        ? service.depends_on
        : Object.keys((service.depends_on as object | undefined) ?? {});
      for (const other of awaited)
        expect({ name, names }).toEqual({ name, names: expect.arrayContaining([other]) });
    }
    const created = /for name in ([A-Z ]+);/.exec(text)![1]!.split(" ");
    const asked = [...text.matchAll(/\$\{(\w+)_SECRET:\?\}/g)].map(([, name]) => name!);
    expect(new Set(asked)).toEqual(new Set(created));
  });

  test("ClickHouse and the keepers have the names of their configuration", () => {
    const aliases = (prefix: string) =>
      names
        .filter((name) => name.startsWith(prefix))
        .flatMap(
          (name) => (services[name]!.networks as Record<string, { aliases: string[] }>).cluster!.aliases,
        );
    expect(aliases("clickhouse-")).toEqual(replicas);
    expect(aliases("keeper-")).toEqual(keepers.map(({ hostname }) => hostname));
    for (const { id } of keepers) {
      const variable = batchStore.keeper_server.server_id["@from_env"];
      expect(environment(`keeper-${id}`)[variable]).toBe(String(id));
    }
    for (const name of names.filter((each) => each.startsWith("clickhouse-")))
      expect(services[name]!.hostname).toBe(name);
  });

  test("the balancer lists all of them with their addresses", () => {
    const config = read("haproxy.cfg");
    const backends = new Map(
      config
        .split(/^(?=\w)/m)
        .filter((part) => part.startsWith("backend "))
        .map((part) => [
          /^backend (\w+)/.exec(part)![1]!,
          [...part.matchAll(/^ {2}server (\S+) (\S+)/gm)].map(([, name, place]) => [name!, place!]),
        ]),
    );
    const there = nodes.map((name) => [name, `${name}:${imagePort}`]);
    expect(backends.get("events")).toEqual(there);
    expect(backends.get("nodes")).toEqual(there);
    expect(backends.get("imports")).toEqual(there);
    expect(backends.get("clickhouse")!.map(([name]) => `${name}.clickhouse-nodes`)).toEqual(replicas);
    expect(services.balancer!.ports).toEqual([`8000:${/frontend public\n {2}bind :(\d+)/.exec(config)![1]}`]);
  });
});

describe("Kubernetes", () => {
  interface Resource {
    kind: string;
    metadata: { name: string };
    // biome-ignore lint/suspicious/noExplicitAny: every kind has a shape of its own.
    spec: any;
  }
  const kustomization = parse(read("kustomization.yaml")) as {
    resources: string[];
    configMapGenerator: { name: string; files: string[] }[];
    images: { name: string }[];
  };
  const resources = kustomization.resources.flatMap((name) =>
    parseAllDocuments(read(name)).map((document) => document.toJS() as Resource),
  );
  const ofKind = (kind: string) => resources.filter((resource) => resource.kind === kind);
  const sets = ofKind("StatefulSet");
  const named = (kind: string, name: string) =>
    ofKind(kind).find(({ metadata }) => metadata.name === name)!.spec;
  const getContainer = (name: string) => named("StatefulSet", name).template.spec.containers[0];
  /** The names under which the pods of a set find each other. */
  const podNames = (name: string): string[] => {
    const { replicas: count, ordinals, serviceName } = named("StatefulSet", name);
    return Array.from(
      { length: count },
      (_, index) => `${name}-${(ordinals?.start ?? 0) + index}.${serviceName}`,
    );
  };

  test("has three nodes with valid settings", () => {
    expect(named("StatefulSet", "flagkeep").replicas).toBe(3);
    expect(named("StatefulSet", "flagkeep").template.spec.enableServiceLinks).toBe(false);
    const { env, ports, volumeMounts } = getContainer("flagkeep");
    const environment = Object.fromEntries(
      (env as { name: string; value?: string }[]).map(({ name, value }) => [name, value ?? "secret"]),
    );
    expect(unknownVariables(environment)).toEqual([]);
    const config = readConfig({}, environment);
    expect(
      named("StatefulSet", "flagkeep").template.spec.terminationGracePeriodSeconds * 1_000,
    ).toBeGreaterThan(config["shutdown-timeout"] + 15_000);
    expect(ports).toEqual([{ name: "http", containerPort: imagePort }]);
    expect(volumeMounts[0].mountPath).toBe(imageVolume);
    expectEventsAddress(environment.FLAGKEEP_EVENTS_URL!, "clickhouse");
    const database = named("Cluster", "postgres").bootstrap.initdb;
    expect(config["postgres-url"]).toMatchObject({
      hosts: [{ host: "postgres-rw", port: 5432 }],
      database: database.database,
      tls: true,
      user: database.owner,
    });
    const { runAsUser, runAsGroup } = named("StatefulSet", "flagkeep").template.spec.securityContext;
    expect([runAsUser, runAsGroup]).toEqual([Number(imageUser), Number(imageGroup)]);
  });

  test("ClickHouse and the keepers have the names of their configuration", () => {
    expect(podNames("clickhouse")).toEqual(replicas);
    expect(podNames("keeper")).toEqual(keepers.map(({ hostname }) => hostname));
    expect(keepers.map(({ id }) => id)).toEqual(
      [1, 2, 3].map((id) => id - 1 + named("StatefulSet", "keeper").ordinals.start),
    );
  });

  test("names volumes, ports, services, labels and files that are there", () => {
    for (const { metadata, spec } of sets) {
      const { template, selector, volumeClaimTemplates, serviceName } = spec;
      expect(selector.matchLabels).toEqual(template.metadata.labels);
      expect(named("Service", serviceName).clusterIP).toBe("None");
      expect(named("PodDisruptionBudget", metadata.name).maxUnavailable).toBe(1);
      const container = template.spec.containers[0];
      const volumes = [
        ...(template.spec.volumes ?? []).map(({ name }: { name: string }) => name),
        ...volumeClaimTemplates.map((claim: Resource) => claim.metadata.name),
      ];
      for (const { name, subPath } of container.volumeMounts) {
        expect(volumes).toContain(name);
        if (subPath === undefined) continue;
        const map = template.spec.volumes.find((volume: { name: string }) => volume.name === name).configMap
          .name;
        const generated = kustomization.configMapGenerator.find((each) => each.name === map)!;
        expect(generated.files).toEqual([`clickhouse/${subPath}`]);
        expect(read(generated.files[0]!)).not.toBe("");
      }
      const ports = container.ports.map(({ name }: { name: string }) => name);
      for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"]) {
        const { httpGet, tcpSocket } = container[probe] ?? {};
        if (container[probe] !== undefined) expect(ports).toContain((httpGet ?? tcpSocket).port);
      }
    }
    for (const { spec } of ofKind("Service")) {
      const set = sets.find((each) => Bun.deepEquals(each.spec.selector.matchLabels, spec.selector))!;
      const ports = set.spec.template.spec.containers[0].ports.map(({ name }: { name: string }) => name);
      for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort);
    }
    const secrets = /create secret generic (\w+) [\s\S]*?=\$?/.exec(read("kustomization.yaml"))![1];
    for (const { spec } of sets)
      for (const { valueFrom } of spec.template.spec.containers[0].env ?? [])
        if (valueFrom?.secretKeyRef !== undefined)
          expect([secrets, "postgres-app"]).toContain(valueFrom.secretKeyRef.name);
  });

  testWhen(
    installedProgram("kubectl") !== undefined,
    "the manifests put together by kubectl",
    "no kubectl",
  )("kubectl puts them together, with the names of what it makes", () => {
    const { stdout, exitCode } = Bun.spawnSync(["kubectl", "kustomize", folder]);
    expect(exitCode).toBe(0);
    const created = parseAllDocuments(stdout.toString()).map((document) => document.toJS() as Resource);
    const maps = created.filter(({ kind }) => kind === "ConfigMap").map(({ metadata }) => metadata.name);
    const used = created
      .filter(({ kind }) => kind === "StatefulSet")
      .flatMap(({ spec }) => spec.template.spec.volumes ?? [])
      .flatMap((volume: { configMap?: { name: string } }) => volume.configMap?.name ?? []);
    expect(maps.length).toBe(2);
    expect(used.toSorted()).toEqual(maps.toSorted());
  });
});

const hasBalancer = installedProgram("haproxy") !== undefined;
if (!hasBalancer) console.log("SKIPPED the balancer of several nodes: no haproxy");
describe.skipIf(!hasBalancer)("the balancer", () => {
  /** Stands for a node or a replica: says who it is, and is ready for some things. */
  const stand = (name: string, isReady: (role: string | null) => boolean) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const { pathname, searchParams } = new URL(request.url, "http://stand");
        if (pathname === "/_readiness" || pathname === "/ping")
          return new Response(null, { status: isReady(searchParams.get("role")) ? 200 : 503 });
        return Response.json({ name, forwarded: request.headers.get("x-forwarded-for") });
      },
    });
  let flagkeep: ServerProcess;
  let balancer: Subprocess;
  const state = { flagsOnly: true, first: true };
  const servers: Record<string, Server<undefined>> = {};
  const place = temporaryFolder();
  const publicPort = freePort();
  const clickhousePort = freePort();

  beforeAll(async () => {
    flagkeep = await ServerProcess.start({ args: ["--trusted-proxies", "127.0.0.1"] });
    servers["flagkeep-2"] = stand("flagkeep-2", (role) => role === "flags" || !state.flagsOnly);
    servers["flagkeep-3"] = stand("flagkeep-3", () => false);
    servers["clickhouse-1"] = stand("clickhouse-1", () => state.first);
    servers["clickhouse-2"] = stand("clickhouse-2", () => true);
    const address: Record<string, string> = { "flagkeep-1": new URL(flagkeep.url).host };
    for (const [name, server] of Object.entries(servers)) address[name] = `127.0.0.1:${server.port}`;
    const config = read("haproxy.cfg")
      .replace(/^( {2}server (\S+)) \S+/gm, (_, start: string, name: string) => `${start} ${address[name]}`)
      .replace("bind :8000", `bind 127.0.0.1:${publicPort}`)
      .replace("bind :8123", `bind 127.0.0.1:${clickhousePort}`);
    await Bun.write(join(place, "haproxy.cfg"), config);
    balancer = Bun.spawn(["haproxy", "-db", "-f", join(place, "haproxy.cfg")], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
      env: { PATH: `${process.env.PATH}:/usr/sbin` },
    });
  }, 30_000);
  afterAll(async () => {
    balancer?.kill("SIGKILL");
    await flagkeep?.[Symbol.asyncDispose]();
    for (const server of Object.values(servers)) server.stop(true);
    rmSync(place, { recursive: true, force: true });
  });

  /** The server that answers a request: `front` for the real one. */
  async function answering(path: string, port = publicPort): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "X-Forwarded-For": "203.0.113.9" },
      body: JSON.stringify({ api_key: flagkeep.token, event: "seen", distinct_id: "a" }),
    }).catch(() => undefined);
    if (response === undefined) return "none";
    if (response.status !== 200) return String(response.status);
    const { name = "front", forwarded } = (await response.json()) as { name?: string; forwarded?: string };
    if (name.startsWith("flagkeep")) expect(forwarded).toBe("127.0.0.1");
    return name;
  }
  /** All that answer twenty requests. */
  const allAnswering = async (path: string) => {
    const names = new Set<string>();
    for (let index = 0; index < 20; index++) names.add(await answering(path));
    return [...names].sort();
  };

  test("events are routed to nodes that accept them, other requests to all ready nodes", async () => {
    await until(
      async () => Bun.deepEquals(await allAnswering("/flags/?v=2"), ["flagkeep-2", "front"]),
      "both are up",
    );
    for (const path of ["/capture/", "/i/v0/e/", "/batch"])
      expect(await allAnswering(path).then((names) => names.includes("flagkeep-2"))).toBe(false);
    for (const path of [
      "/api/projects/1/imports/",
      "/api/projects/1/imports/x/parts/",
      "/api/instance/imports/",
    ])
      expect(await allAnswering(path)).toHaveLength(1);
    const event = await until(async () => (await flagkeep.events("event=seen"))[0], "an event is stored");
    expect(event.properties.$ip).toBe("127.0.0.1");
    // A dead node gets no requests; if no node accepts events, a node responds with 503 itself.
    await flagkeep.kill();
    await until(async () => Bun.deepEquals(await allAnswering("/flags/?v=2"), ["flagkeep-2"]), "one is left"); //X
    await until(
      async () => (await answering("/capture/")) === "flagkeep-2",
      "the other one answers for itself",
    );
  }, 60_000);

  test("one replica of ClickHouse is asked, and the other one when it is away", async () => {
    const asked = () => answering("/?query=SELECT+1", clickhousePort);
    await until(async () => (await asked()) === "clickhouse-1", "the first one is asked");
    state.first = false;
    await until(async () => (await asked()) === "clickhouse-2", "the second one is asked");
    state.first = true;
    await until(async () => (await asked()) === "clickhouse-1", "the first one is asked again");
  }, 60_000);
});

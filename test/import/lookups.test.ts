/** Lookup files are joined with the events of their source. Source: contract, import 2.6, 2.11, 1.9. */

import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { flagkeep } from "../support/server.ts";
import { SampleProject } from "./samples.ts";

const eventId = "0190a000-0000-4000-8000-000000000001";

test("Umami: event_data, session, session_data and revenue, read before events", async () => {
  const project = await SampleProject.create();
  mkdirSync(join(project.folder, "umami"));
  project.write(
    "umami/website_event.csv",
    `event_id,website_id,session_id,created_at,url_path,event_type,event_name\n${eventId},w,s1,2024-05-01 10:00:00,/a,2,buy\n`,
  );
  project.write(
    "umami/z_event_data.csv",
    `website_event_id,data_key,string_value,number_value,date_value,data_type\n${eventId},plan,pro,,,1\n${eventId},seats,,5,,2\n${eventId},trial,true,,,3\nother,plan,x,,,1\n`,
  );
  project.write(
    "umami/session.csv",
    "session_id,website_id,browser,os,country,created_at\ns1,w,firefox,Linux,DE,2024-05-01 09:00:00\n",
  );
  project.write(
    "umami/session_data.csv",
    "session_id,data_key,string_value,number_value,date_value,data_type\ns1,tier,gold,,,1\n",
  );
  project.write(
    "umami/revenue.csv",
    `website_id,session_id,event_id,event_name,currency,revenue,created_at\nw,s1,${eventId},buy,EUR,19.5,2024-05-01 10:00:00\n`,
  );
  const folder = join(project.folder, "umami");
  const wanted = {
    read: 8,
    accepted: 1,
    duplicate: 0,
    rejected: 0,
    left_out: { "joined lookup row": 6, "lookup row without an event": 1 },
  };
  expect(await project.file(folder, "--dry-run")).toMatchObject(wanted);
  expect(await project.file(folder)).toMatchObject(wanted);
  const [event] = await project.query("SELECT properties FROM events WHERE event = 'buy'");
  expect(event!.properties).toMatchObject({
    plan: "pro",
    seats: 5,
    trial: true,
    revenue: 19.5,
    currency: "EUR",
    $browser: "firefox",
    $os: "Linux",
    $geoip_country_code: "DE",
    $set: { tier: "gold" },
  });
  expect(await project.file(folder)).toMatchObject({ accepted: 0, duplicate: 1, made: 0 });
}, 60_000);

test("Heap: users have identities and person properties", async () => {
  const project = await SampleProject.create();
  mkdirSync(join(project.folder, "heap"));
  project.write(
    "heap/pageviews.csv",
    "event_id,user_id,session_id,time,domain,path\n1,7,2,2024-05-01 10:00:00,e.example,/a\n",
  );
  project.write(
    "heap/users.csv",
    "user_id,identity,joindate,plan\n7,anna,2024-01-01,pro\n8,bob,2024-01-01,x\n",
  );
  expect(await project.file(join(project.folder, "heap"))).toMatchObject({
    read: 3,
    accepted: 1,
    not_taken: {},
    left_out: { "joined lookup row": 1, "lookup row without an event": 1 },
  });
  expect(await project.persons()).toEqual([["anna"]]);
  const [person] = await project.query("SELECT properties FROM persons");
  expect(person!.properties).toMatchObject({ plan: "pro", joindate: "2024-01-01" });
}, 60_000);

test("Heap: a row of all_events yields to the same event in its own table", async () => {
  const project = await SampleProject.create();
  mkdirSync(join(project.folder, "heap"));
  const head = "event_id,user_id,session_id,time";
  const at = "2024-05-01 10:00:00";
  project.write(
    "heap/all_events_000.csv",
    `${head},event_table_name\n1,7,2,${at},pageviews\n2,7,2,${at},signed_up\n`,
  );
  project.write("heap/pageviews.csv", `${head},domain,path\n1,7,2,${at},e.example,/a\n`);
  expect(await project.file(join(project.folder, "heap"))).toMatchObject({ accepted: 2, duplicate: 1 });
  const rows = await project.query(
    "SELECT event, properties->>'$pathname' AS path FROM events ORDER BY event",
  );
  expect(rows).toEqual([
    { event: "$pageview", path: "/a" },
    { event: "signed_up", path: null },
  ]);
}, 60_000);

test("Segment and RudderStack: a row of tracks yields to the same event in its own table", async () => {
  const head = "id,anonymous_id,user_id,event,event_text,original_timestamp,timestamp";
  const row = "t1,a1,u1,video_played,Video Played,2024-05-01 10:00:00,2024-05-01 10:00:00";
  for (const tracks of ["tracks.csv", "TRACKS_000.csv", "tracks/part-0.csv"]) {
    const project = await SampleProject.create();
    mkdirSync(join(project.folder, "warehouse/tracks"), { recursive: true });
    project.write(`warehouse/${tracks}`, `${head}\n${row}\n`);
    project.write("warehouse/video_played.csv", `${head},film\n${row},Dune\n`);
    const folder = join(project.folder, "warehouse");
    expect(await project.file(folder)).toMatchObject({ accepted: 1, duplicate: 1 });
    const [event] = await project.query("SELECT properties FROM events WHERE event = 'Video Played'");
    expect(event!.properties).toMatchObject({ film: "Dune" });
  }
}, 60_000);

test("a lookup file alone is rejected with the name of the file that it belongs to", async () => {
  const project = await SampleProject.create();
  const path = project.write("users.csv", "user_id,identity,joindate\n7,anna,2024-01-01\n");
  const { stderr, code } = await flagkeep(["import", path, "--data-dir", project.dataDir]);
  expect(code).toBe(1);
  expect(stderr).toContain("Heap Connect's tables of events: put both in one folder");
}, 60_000);

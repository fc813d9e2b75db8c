/** Layout around every page: menu, project, palette, health, theme, account. */

import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { queryString, request, toApiError } from "../lib/api.ts";
import type { Backups } from "../lib/api-types.ts";
import { compact, initials } from "../lib/format.ts";
import { pageLoaded } from "../lib/resource.ts";
import { rootPath, to } from "../lib/router.ts";
import { serverPath } from "../lib/server.ts";
import {
  chooseProject,
  inProject,
  isOperator,
  isStartDone,
  markStartDone,
  me,
  project,
  projects,
  signOut,
  startFacts,
  startSteps,
} from "../lib/session.ts";
import { isApple, setShortcuts, shortcutsOn, useShortcuts } from "../lib/shortcuts.ts";
import { chooseTheme, storedTheme, themeNames } from "../lib/theme.ts";
import { messages } from "../messages/index.ts";
import { readFlags } from "../model/flags.ts";
import { ConfirmPassword } from "./confirm.tsx";
import { Dialog } from "./dialog.tsx";
import { Checkbox } from "./fields.tsx";
import { Health, isDegraded, LostBar, MenuHealth } from "./health.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { Menu, type MenuItem } from "./menu.tsx";
import { menuGroups, type PageName } from "./menu-pages.ts";
import { Page } from "./page.tsx";
import { Palette } from "./palette.tsx";
import { Button } from "./primitives.tsx";
import { ProjectSwitcher } from "./project-switcher.tsx";
import { ErrorState, Rows } from "./states.tsx";
import { Toasts } from "./toast.tsx";

const w = messages.frame;

/** On a narrow screen these are in the bar, the others in its menu. */
const narrowScreen = new Set<PageName>(["overview", "flags", "events", "explore"]);

const proposalsMax = 100;

const jumpKeys: Record<string, string> = {
  "g o": "overview",
  "g f": "flags",
  "g l": "events",
  "g e": "explore",
  "g s": "sql",
  "g p": "persons",
  "g c": "cohorts",
  "g d": "dashboards",
  "g a": "activity",
  "g i": "instance",
};

export function Layout({ children }: { children: ComponentChildren }) {
  const { path, route, query } = useLocation();
  // Back, forward and links may lead to pages of other projects.
  useLayoutEffect(() => {
    const named = Number(query.project);
    if (named !== project.value?.id && projects.value.some(({ id }) => id === named)) chooseProject(named);
  }, [query.project]);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const current = path.slice(rootPath.length + 1).split("/")[0];

  useEffect(() => setMenuOpen(false), [path]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPaletteOpen((isOpen) => !isOpen);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  useShortcuts({
    ...Object.fromEntries(Object.entries(jumpKeys).map(([keys, name]) => [keys, () => route(to(name))])),
    "?": () => setHelpOpen(true),
    "/": () => document.querySelector<HTMLElement>("main input[type=search]")?.focus(),
  });

  return (
    <div class="frame">
      <a class="skip" href="#content">
        {w.skip}
      </a>
      <header class="top">
        <a class="brand" href={to("")}>
          <MarkAndName />
        </a>
        <ProjectSwitcher page={current || "flags"} />
        <button type="button" class="jump" onClick={() => setPaletteOpen(true)}>
          <Icon name="search" />
          <span>{w.search}</span>
          <kbd>{isApple ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <Health />
        <Menu
          label={`${userInitials()} ${w.account}`}
          face={<span class="initials">{userInitials()}</span>}
          items={() => [
            [w.actions.account, () => route(to("settings", { tab: "account" }))],
            [w.actions.keys, () => route(to("settings", { tab: "keys" }))],
            [w.actions.team, () => route(to("settings", { tab: "team" }))],
            ...themeNames.map(
              (name): MenuItem => [
                w.actions.theme(w.themes[name]),
                () => chooseTheme(name),
                undefined,
                name === storedTheme(),
              ],
            ),
            [w.actions.shortcuts, () => setHelpOpen(true)],
            [w.actions.docs, () => open(`${serverPath}/docs/`, "_blank", "noopener")],
            [w.actions.signOut, () => void signOut()],
          ]}
        />
      </header>
      <LostBar />
      <nav class={isMenuOpen ? "side open" : "side"} aria-label={w.menu}>
        {menuGroups.map(({ name: group, pages }, position) => [
          position === menuGroups.length - 1 && <StartPill key="start" current={current} />,
          <div
            key={pages[0]![0]}
            class="menu-group"
            role="group"
            aria-label={group ? w.menuGroups[group] : undefined}
          >
            {group && (
              <span class="menu-label" aria-hidden="true">
                {w.menuGroups[group]}
              </span>
            )}
            <ul>
              {pages.map(([name, icon]) => (
                <li key={name} class={narrowScreen.has(name) ? "" : "wide-only"}>
                  <MenuLink name={name} icon={icon} path={path} isCurrent={current === name} />
                </li>
              ))}
            </ul>
          </div>,
        ])}
        <MenuHealth />
        <ul>
          <li class="narrow-only">
            <button type="button" aria-expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)}>
              <Icon name="more" />
              <span>{w.more}</span>
            </button>
          </li>
        </ul>
      </nav>
      <main id="content" tabIndex={-1} key={project.value?.id}>
        <Guarded path={path}>{children}</Guarded>
      </main>
      {isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} onHelp={() => setHelpOpen(true)} />}
      {isHelpOpen && <Shortcuts onClose={() => setHelpOpen(false)} />}
      <ConfirmPassword />
      <Toasts />
    </div>
  );
}

function MenuLink({
  name,
  icon,
  path,
  isCurrent,
}: {
  name: PageName;
  icon: IconName;
  path: string;
  isCurrent: boolean;
}) {
  return (
    <a href={to(name)} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={icon} />
      <span>{w.pages[name]}</span>
      {name === "flags" && <ProposalCount path={path} />}
      {name === "instance" && isDegraded.value && (
        <span class="trouble">
          <Icon name="warning" size={16} />
          <span class="unseen">{w.health.degraded}</span>
        </span>
      )}
      {name === "instance" && !isOperator.value && <span class="unseen"> ({w.onlyOperators})</span>}
    </a>
  );
}

/** Link to Get started until its steps are done or it is dismissed. */
function StartPill({ current }: { current: string | undefined }) {
  const done = startSteps.value.filter(Boolean).length;
  const isOver = isStartDone.value || done === startSteps.value.length;
  if (isOver && current !== "start") return null;
  return (
    <div class="start-pill wide-only">
      <a href={to("start")} aria-current={current === "start" ? "page" : undefined}>
        <Icon name="start" />
        <span>{w.startSteps(done, startSteps.value.length)}</span>
      </a>
      {!isOver && (
        <button type="button" aria-label={w.dismissStart} onClick={() => markStartDone()}>
          <Icon name="close" size={14} />
        </button>
      )}
    </div>
  );
}

/** Error boundary: a page that fails to render keeps the menu usable. */
function Guarded({ path, children }: { path: string; children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary(console.error);
  const drawn = useRef(path);
  useEffect(() => {
    // Not on the first render: a fast page may have failed by then, and the error would be cleared.
    if (drawn.current !== path) reset();
    drawn.current = path;
  }, [path]);
  return error ? (
    <Page title={w.failedTitle}>
      <ErrorState failure={toApiError(error)} onRetry={reset} />
    </Page>
  ) : (
    children
  );
}

/** Layout before the session is known; `index.html` contains its beginning. */
export function Opening() {
  return (
    <div class="frame">
      <header class="top">
        <span class="brand">
          <MarkAndName />
        </span>
      </header>
      <main>
        <Rows />
      </main>
    </div>
  );
}

function MarkAndName() {
  return (
    <>
      <span class="mark">
        <Icon name="flag" size={16} />
      </span>
      <span class="brand-name">{w.product}</span>
    </>
  );
}

/** Number of change requests that wait for this user; also reads the facts of the first steps. */
function ProposalCount({ path }: { path: string }) {
  const [count, setCount] = useState(0);
  const id = project.value?.id;
  // The number changes by actions on the pages.
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    pageLoaded(signal)
      .then(() =>
        Promise.all([
          readFlags({ limit: 1, order: "-last_called_at" }, signal),
          request<{ results: { created_by: { uuid?: string } | null }[] }>(
            inProject(`change_requests/${queryString({ state: "pending", limit: proposalsMax })}`),
            { signal },
          ),
          isOperator.value && !isStartDone.value
            ? // Without it the count is still shown.
              request<Backups>("/api/instance/backups/", { signal }).catch(() => undefined)
            : undefined,
        ]),
      )
      .then(
        ([found, proposals, backups]) => {
          setCount(proposals.results.filter(({ created_by: by }) => by?.uuid !== me.value?.uuid).length);
          startFacts.value = {
            hasFlags: found.count > 0,
            isEvaluated: found.results[0]?.last_called_at != null,
            hasSchedule: backups?.next_at != null,
          };
        },
        () => undefined,
      );
    return () => controller.abort();
  }, [id, path]);
  return (
    <span class="menu-count">
      {count > 0 && (
        <>
          <span aria-hidden="true">{compact(count)}</span>
          <span class="unseen"> {w.pendingApprovals(count)}</span>
        </>
      )}
    </span>
  );
}

function userInitials(): string {
  const { first_name: first = "", last_name: last = "", email = "" } = me.value ?? {};
  return initials(first === "" ? email : `${first} ${last}`);
}

function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title={w.shortcuts.title}
      onClose={onClose}
      actions={<Button onClick={onClose}>{w.close}</Button>}
    >
      <table class="plain-table">
        <tbody>
          {w.shortcuts.list.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Checkbox label={w.shortcuts.on} isOn={shortcutsOn.value} onChange={setShortcuts} />
    </Dialog>
  );
}

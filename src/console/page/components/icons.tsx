/** Icons: strokes on a 24 × 24 grid. Decorative only; each is next to a word. */

const iconPaths = {
  flag: "M5 21V4h13l-3 4.5 3 4.5H5",
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  start: "M5 12h14M13 6l6 6-6 6",
  live: "M3 12h4l3-8 4 16 3-8h4",
  chart: "M4 20V10M10 20V4M16 20v-7M22 20H2",
  sql: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0V6zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  persons:
    "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM2 21c0-5 3-7 7-7s7 2 7 7M16 3.5a4 4 0 0 1 0 7M18 14c3 .6 4.500 3 4.500 7",
  cohorts: "M12 3l9 5-9 5-9-5 9-5zM3 13l9 5 9-5",
  dashboards: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  activity: "M12 8v5l3 2M3 12a9 9 0 1 0 3-6.700L3 8M3 3v5h5",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4v6M8 14v6",
  instance: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500L19 19M5 19l1.500-1.500M17.500 6.500L19 5",
  moon: "M20 14A8.500 8.500 0 0 1 10 4a8.500 8.500 0 1 0 10 10z",
  system: "M3 4h18v12H3zM8 20h8M12 16v4",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  check: "M4 12.500l5 5L20 6.500",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  up: "M6 15l6-6 6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  warning: "M12 3l10 18H2L12 3zM12 10v5M12 18h.01",
  pause: "M8 5v14M16 5v14",
  play: "M7 4l13 8-13 8V4z",
  grip: "M9 6h.01M9 12h.01M9 18h.01M15 6h.01M15 12h.01M15 18h.01",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  refresh: "M20 11a8 8 0 1 0-2 6M20 4v7h-7",
  user: "M12 12a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM4 21c0-5 4-7 8-7s8 2 8 7",
  filter: "M3 5h18l-7 8v6l-4 2v-8L3 5z",
  key: "M14 14a5 5 0 1 0-4-4l-7 7v4h4v-3h3v-3l1-1M16 8h.01",
  history: "M12 8v5l3 2M3 12a9 9 0 1 0 3-6.700L3 8M3 3v5h5",
  expand: "M4 9V4h5M20 15v5h-5M4 4l6 6M20 20l-6-6",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  target: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8z",
} as const;

export type IconName = keyof typeof iconPaths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={iconPaths[name]} />
    </svg>
  );
}

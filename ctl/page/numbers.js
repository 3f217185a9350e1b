// SPDX-License-Identifier: Apache-2.0
// Numbers as a person reads them. A number that is not known (null, or not finite) is a dash.

export const NONE = "–";
export const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const DIGITS = 4; // that count
const short = (value, digits) => new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value);

export const count = (value) => (isKnown(value) ? whole.format(value) : NONE);

export function number(value, digits = DIGITS) {
  if (!isKnown(value)) return NONE;
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e9) ? value.toExponential(digits - 2) : short(value, digits);
}

export const percent = (value, digits = DIGITS) => (isKnown(value) ? `${short(100 * value, digits)} %` : NONE);

export function bytes(value) {
  if (!isKnown(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value >= 100 || unit === 0 ? whole.format(value) : value.toPrecision(2)} ${units[unit]}`;
}

export const rate = (value) => (isKnown(value) ? `${bytes(value)}/s` : NONE);

export function seconds(value) {
  if (!isKnown(value)) return NONE;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${value.toFixed(0)} s`;
  if (value < 7200) return `${(value / 60).toFixed(0)} min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)} h` : `${(value / 86400).toFixed(1)} days`;
}

export const milliseconds = (value) => (isKnown(value) ? `${short(value, DIGITS)} ms` : NONE);

/** "3 nodes", "1 node". */
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

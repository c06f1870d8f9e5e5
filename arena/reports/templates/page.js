'use strict';
// One script for every page: colours, sorting, filters, links that keep both. Pages read well without it.
const KEY = 'unseen-arena-theme';
const DARK = matchMedia('(prefers-color-scheme: dark)');

function kept() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem(KEY, name); } catch { /* no storage: the choice holds for this page */ }
}

// The part of an address after `#`: `tasks-table.q=gelu&tasks-table.sort=-2`, or the plain name of a section.
function state() {
  const hash = location.hash.slice(1);
  return new URLSearchParams(hash.includes('=') ? hash : '');
}

function remember(name, value) {
  const now = state();
  if (value === null) now.delete(name); else now.set(name, value);
  history.replaceState(null, '', `${location.pathname}${location.search}#${now}`);
}

// A column of numbers is sorted by the number at the beginning of a cell.
function valueOf(row, place, number) {
  const text = row.cells[place].textContent.trim().toLowerCase();
  if (!number) return text;
  const value = parseFloat(text);
  return Number.isNaN(value) ? '' : value;
}

// Rows without a value stay last in both directions.
function compare(one, two, down) {
  if ((one === '') !== (two === '')) return (one === '') - (two === '');
  const order = typeof one === 'number' ? one - two : one.localeCompare(two);
  return down ? -order : order;
}

function sort(table, place, down) {
  const body = table.tBodies[0];
  const number = table.tHead.rows[0].cells[place].classList.contains('number');
  const rows = [...body.rows].map(row => [valueOf(row, place, number), row]);
  rows.sort((one, two) => compare(one[0], two[0], down));
  body.append(...rows.map(pair => pair[1]));
  [...table.tHead.rows[0].cells].forEach((cell, at) => {
    if (at === place) cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    else cell.removeAttribute('aria-sort');
  });
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...cell.childNodes);
    button.addEventListener('click', () => {
      const first = cell.classList.contains('number');  // numbers: largest first
      const down = cell.hasAttribute('aria-sort') ? cell.getAttribute('aria-sort') === 'ascending' : first;
      sort(table, place, down);
      remember(`${table.id}.sort`, `${down ? '-' : ''}${place + 1}`);
    });
    cell.append(button);
  });
}

function fits(row, control) {
  if (!control.value) return true;
  if (control.name === 'q') return row.textContent.toLowerCase().includes(control.value.toLowerCase());
  return ` ${row.dataset[control.name]} `.includes(` ${control.value} `);
}

function filter(bar) {
  const table = document.getElementById(bar.dataset.table);
  const controls = [...bar.querySelectorAll('input, select')];
  const rows = [...table.tBodies[0].rows];
  rows.forEach(row => { row.hidden = !controls.every(control => fits(row, control)); });
  const count = bar.querySelector('output');
  if (count) count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
}

function makeFilter(bar) {
  bar.hidden = false;
  bar.querySelectorAll('input, select').forEach(control => {
    control.dataset.first = control.value;
    control.addEventListener('input', () => {
      filter(bar);
      const value = control.value === control.dataset.first ? null : control.value;
      remember(`${bar.dataset.table}.${control.name}`, value);
    });
  });
}

function restore() {
  const now = state();
  document.querySelectorAll('.filters').forEach(bar => {
    bar.querySelectorAll('input, select').forEach(control => {
      control.value = now.get(`${bar.dataset.table}.${control.name}`) ?? control.dataset.first;
    });
    filter(bar);
  });
  document.querySelectorAll('table[data-sortable]').forEach(table => {
    const place = Number(now.get(`${table.id}.sort`));
    if (place && Math.abs(place) <= table.tHead.rows[0].cells.length) sort(table, Math.abs(place) - 1, place < 0);
  });
  const first = [...now.keys()][0];
  const target = document.getElementById(first ? first.split('.')[0] : decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  target.scrollIntoView();
}

function start() {
  const theme = document.createElement('button');
  theme.type = 'button';
  const name = () => { theme.textContent = dark() ? 'Light colours' : 'Dark colours'; };
  const dark = () => (document.documentElement.dataset.theme ?? (DARK.matches ? 'dark' : 'light')) === 'dark';
  theme.addEventListener('click', () => { setTheme(dark() ? 'light' : 'dark'); name(); });
  name();
  document.querySelector('.top')?.append(theme);
  document.querySelectorAll('table[data-sortable]').forEach(makeSortable);
  document.querySelectorAll('.filters').forEach(makeFilter);
  document.querySelectorAll('[data-expand]').forEach(button => button.addEventListener('click', () => {
    const open = button.getAttribute('aria-pressed') !== 'true';
    document.querySelectorAll(button.dataset.expand).forEach(one => { one.open = open; });
    button.setAttribute('aria-pressed', String(open));
    button.textContent = open ? 'Collapse all' : 'Expand all';
  }));
  addEventListener('hashchange', restore);
  restore();
}

if (['light', 'dark'].includes(kept())) document.documentElement.dataset.theme = kept();
document.addEventListener('DOMContentLoaded', start);

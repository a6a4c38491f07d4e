-- Reads what a new leader must know of its jobs. A job without a cursor starts now, by the server's clock.
-- KEYS: 1 lease, 2 state, then one hash for each job, then the coverage, the control and the schedules made at run time; then for each job that had other names its records of runs
--       and of other ticks, and for each of those names the hash and both records
-- ARGV: 1 holder, 2 term, or 0 for jobs that need no leader, 3 version and 4 time zones of who writes a schedule, then for each job its schedule, or '' for one made at run
--       time, whose state is written where it is made; then the program's other jobs of the group, which are asked
--       for apart; the jobs that other living instances have, or '*' = not known; the places of the jobs that had other names, each with how many, `place:count`; and the number of jobs
-- Gives: 'yours', now, late_from or '', then for each job its cursor, the tick that waits or '', what is open: '0' or '-', and for
--        each run that pauses fence|tick|tries|again|outcome; the schedule in force and what is kept about it; then the number of the
--        newest act of control, and for each job a line of the spans in which no leader could decide its ticks; or 'not_yours'; or 'moved' with names of jobs
--        that go on under others, each with the other: nothing was done
local held = redis.pcall('GET', KEYS[1])
local state = redis.call('HMGET', KEYS[2], 'term', 'late_from', 'control', 'led_until', 'foreign')
local unled = ARGV[2] == '0'
if not unled and (held ~= ARGV[1] or state[1] ~= ARGV[2]) then
  return { 'not_yours' }
end
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

local jobs = tonumber(ARGV[#ARGV])
-- Whoever has deleted the state did not mean what people have asked for, and made: it is counted and told anew.
if not state[3] then
  local asked, made = redis.pcall('HLEN', KEYS[jobs + 4]), redis.pcall('EXISTS', KEYS[jobs + 5])
  asked = type(asked) == 'number' and asked or 0
  if asked > 0 or made == 1 then
    local number = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
    redis.call('HSET', KEYS[2], 'control', number, 'controlled', asked)
    if made == 1 then
      redis.call('HSET', KEYS[2], 'made', number)
    end
    state[3] = number
  end
end

-- What the next leader finds open: '0' when a run is under way somewhere, and the runs that pause.
local function found(lines)
  local told = { '-' }
  for line in string.gmatch(lines, '%S+') do
    local tick, _, fence, _, number, _, _, tries, again, outcome = string.match(
      line, '^(%-?%d+)|([^|]*)|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(%d+)|(%d*)|([^|]*)$'
    )
    if tick and again ~= '' then
      told[#told + 1] = table.concat({ fence, tick, tries, again, outcome }, '|')
    elseif tick then
      told[1] = '0'
    end
  end
  return table.concat(told, ' ')
end

-- What is kept about a schedule that is written here: since when, time zones, instance, version.
local function about_now(since)
  return table.concat({ since, ARGV[4], string.match(ARGV[1], '^(.*)#') or ARGV[1], ARGV[3] }, '|')
end

local coverage = KEYS[jobs + 3]
local known, own, changes, absences = read_coverage(coverage), {}, {}, {}
local job_keys = #coverage - #'coverage' + #'job:'

local function name_of(key)
  return string.sub(key, job_keys + 1)
end

local asked, moved, beside = {}, { 'moved' }, {}
for name in string.gmatch(ARGV[#ARGV - 3], '%S+') do
  beside[name] = true
end
for i = 3, jobs + 2 do
  asked[name_of(KEYS[i])] = KEYS[i]
end
for name, key in pairs(asked) do
  local kept_as = goes_on_as(known, name)
  if kept_as ~= name and (asked[kept_as] or beside[kept_as]) then
    -- The program has both: the old name is a new job's.
    known[name] = ''
    changes[#changes + 1] = name
    changes[#changes + 1] = ''
    ask_anew(key, 'HDEL', key, 'moved')
  elseif kept_as ~= name then
    moved[#moved + 1] = name
    moved[#moved + 1] = kept_as
  end
end
if #moved > 1 then
  return moved
end

-- A job goes on under another name: all that is kept of it.
local function rename(old, new, old_keys, new_keys)
  for at, key in ipairs(old_keys) do
    if redis.call('EXISTS', key) == 1 then
      redis.call('RENAME', key, new_keys[at])
    end
  end
  redis.call('HSET', old_keys[1], 'moved', new)
  known[new], known[old] = known[old] or '', '>' .. new
  for _, word in ipairs({ new, known[new], old, known[old] }) do
    changes[#changes + 1] = word
  end
  local control = KEYS[jobs + 4]
  local fields = redis.pcall('HGETALL', control)
  local pause = redis.pcall('HEXISTS', control, 'p:' .. new) == 1
  for f = 1, #fields, 2 do
    local field, line = fields[f], fields[f + 1]
    local origin, of_job, rest = string.match(line, '^(%a+)|([^|]+)|(.*)$')
    if field == 'p:' .. old then
      redis.call('HDEL', control, field)
      if not pause then
        redis.call('HSET', control, 'p:' .. new, line)
      end
    elseif string.sub(field, 1, 2) == 'e:' and string.sub(line, 1, #old + 1) == old .. '|' then
      redis.call('HSET', control, field, new .. string.sub(line, #old + 1))
    elseif string.sub(field, 1, 2) == 'r:' and of_job == old then
      redis.call('HSET', control, field, table.concat({ origin, new, rest }, '|'))
    end
  end
  if #fields > 0 then
    redis.call('HSET', KEYS[2], 'controlled', redis.call('HLEN', control))
  end
end

-- One that is no instant stops its own job only: it starts anew.
local function legible_cursor(text)
  return read_instant(text) and string.match(text, '^%d+$')
end

local function cursor_of(key)
  return legible_cursor(ask_anew(key, 'HGET', key, 'cursor'))
end

local at = jobs + 6
for place, count in string.gmatch(ARGV[#ARGV - 1], '(%d+):(%d+)') do
  local key = KEYS[2 + tonumber(place)]
  local new = name_of(key)
  local is_known = cursor_of(key)
  for n = 1, tonumber(count) do
    local old_keys = { KEYS[at + 3 * n - 1], KEYS[at + 3 * n], KEYS[at + 3 * n + 1] }
    local old = name_of(old_keys[1])
    if not is_known and not asked[old] and not beside[old] and goes_on_as(known, old) == old
      and cursor_of(old_keys[1])
      and redis.call('HEXISTS', old_keys[1], 'made') == 0 then
      rename(old, new, old_keys, { key, KEYS[at], KEYS[at + 1] })
      is_known = true
    end
  end
  at = at + 2 + 3 * tonumber(count)
end

-- Ends what was marked while the job had no leader, and forgets what has been decided since. What a job that nobody had would have been
-- due is nobody's, whoever led.
local function cover(name, cursor)
  local text = known[name]
  local spans = spans_of(text)
  local last = spans[#spans]
  local led_until = math.min(read_instant(state[4]) or tonumber(now), tonumber(now))
  end_open(spans, last and last.kind == 'u' and led_until or tonumber(now))
  for _, span in ipairs(spans_of(state[5])) do
    spans[#spans + 1] = span
  end
  local left = {}
  for _, span in ipairs(spans) do
    if span.kind == 'r' or (span.till or 0) > tonumber(cursor) then
      left[#left + 1] = span
    end
  end
  own[name] = true
  known[name] = text_of(left)
  if known[name] ~= text then
    changes[#changes + 1] = name
    changes[#changes + 1] = known[name]
  end
  absences[#absences + 1] = known[name]
end

local answer = { 'yours', now, read_instant(state[2]) and state[2] or '' }
for i = 3, jobs + 2 do
  local stored = ask_anew(KEYS[i], 'HMGET', KEYS[i], 'cursor', 'waiting', 'schedule', 'schedule_about', 'open', 'moved')
  local cursor = legible_cursor(stored[1])
  if stored[6] then
    -- The coverage knows of no other name: claims are to be taken here.
    redis.call('HDEL', KEYS[i], 'moved')
  end
  local made = ARGV[i + 2] == ''
  if stored[3] == '' and not made then
    -- The name of a schedule made at run time, which has ended, is that of a job of the program now: it begins anew.
    cursor, stored[3], stored[4] = nil, nil, nil
    redis.call('HDEL', KEYS[i], 'made', 'retired')
    redis.call('PERSIST', KEYS[i])
    -- Its records are named by its claims.
    redis.call('HSET', KEYS[i], 'keeps', '1')
  end
  if made and (stored[3] or '') == '' then
    -- It has ended meanwhile.
    cursor = cursor or '0'
  elseif not cursor then
    cursor = now
    redis.call('HSET', KEYS[i], 'since', now, 'cursor', now)
  end
  answer[#answer + 1] = cursor
  -- What is no tick is dropped by the next claim.
  answer[#answer + 1] = legible_cursor(stored[2]) or ''
  answer[#answer + 1] = found(stored[5] or '')
  local schedule, about = stored[3], stored[4]
  if not schedule and not made then
    -- As far as anybody knows, it has been in force since the last decided tick.
    schedule, about = ARGV[i + 2], about_now(cursor)
    redis.call('HSET', KEYS[i], 'schedule', schedule, 'schedule_about', about)
  end
  answer[#answer + 1] = schedule or ''
  answer[#answer + 1] = about or ''
  if unled or ARGV[i + 2] == '' then
    -- There is no leader that could lack it, or it was made at run time: what a leader lacks then is its handler.
    redis.pcall('HDEL', coverage, name_of(KEYS[i]))
    known[name_of(KEYS[i])] = nil
    absences[#absences + 1] = ''
  else
    cover(name_of(KEYS[i]), cursor)
  end
end
answer[#answer + 1] = read_number(state[3]) and state[3] or '0'
answer[#answer + 1] = table.concat(absences, '\n')

-- What is asked for apart from the program's jobs tells nothing of those.
if unled or jobs > 0 and ARGV[5] == '' then
  for at = #changes - 1, 1, -2 do
    if not known[changes[at]] then
      table.remove(changes, at)
      table.remove(changes, at)
    end
  end
  write_coverage(coverage, changes)
  return answer
end
-- Another implementation has led: where the leader before lacked a job, that goes on.
if state[5] then
  for name, text in pairs(known) do
    local spans = spans_of(text)
    local last = spans[#spans]
    if not own[name] and string.sub(text, 1, 1) ~= '>' and not (last and not last.till) then
      known[name] = text_of(spans_of(text .. ' ' .. state[5]))
    end
  end
  redis.call('HDEL', KEYS[2], 'foreign')
end
for _, word in ipairs(mark_lacked(known, own, names_elsewhere(known, ARGV[#ARGV - 2]), tonumber(now))) do
  changes[#changes + 1] = word
end
write_coverage(coverage, changes)
return answer

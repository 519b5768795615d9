// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What newTimeout() and cancel() of Netty's HashedWheelTimer cost, as
// lawn_bench threads measures it of the service: so many threads start a timer
// that is due in a minute and cancel it, over and over.

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

final class Netty {
    private static final TimerTask NOTHING = timeout -> { };

    // Nanoseconds of a pair, by each of so many threads.
    private static double measure(int clients, int count) throws Exception {
        HashedWheelTimer timer = new HashedWheelTimer();
        timer.start();
        AtomicLong nanoseconds = new AtomicLong();
        Thread[] threads = new Thread[clients];
        for (int i = 0; i < clients; ++i) {
            threads[i] = new Thread(() -> {
                long begin = System.nanoTime();
                for (int j = 0; j < count; ++j) {
                    Timeout timeout = timer.newTimeout(NOTHING, 60, TimeUnit.SECONDS);
                    timeout.cancel();
                }
                nanoseconds.addAndGet(System.nanoTime() - begin);
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        timer.stop();
        return (double) nanoseconds.get() / clients / count;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5; ++i) {
            measure(1, 200_000); // for the compiler
        }
        System.out.println("HashedWheelTimer, newTimeout and cancel, by threads; ns");
        for (int clients = 1; clients <= 8; clients *= 2) {
            double[] figures = new double[5];
            for (int i = 0; i < figures.length; ++i) {
                figures[i] = measure(clients, 200_000);
            }
            Arrays.sort(figures);
            System.out.printf("%-20d %11.1f%n", clients, figures[2]);
        }
    }
}
